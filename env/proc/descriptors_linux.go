package proc

import "syscall"

func entryOf(fd int) (Descriptor, bool) {
	var st syscall.Stat_t
	err := syscall.Fstat(fd, &st)
	return Descriptor{Device: st.Dev, Inode: st.Ino}, err == nil
}
