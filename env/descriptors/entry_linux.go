package descriptors

import "syscall"

func entryOf(fd int) (Entry, bool) {
	var st syscall.Stat_t
	err := syscall.Fstat(fd, &st)
	return Entry{Device: st.Dev, Inode: st.Ino}, err == nil
}
