package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// isReadOnly reports whether the mount that a file is in takes no changes.
func isReadOnly(file *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &st) == nil && st.Flags&unix.ST_RDONLY != 0
}
