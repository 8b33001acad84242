package auth

import (
	"os"
	"syscall"
)

// isReadOnly reports whether a file is in a read-only mount.
func isReadOnly(file *os.File) bool {
	const readOnly = 1 // ST_RDONLY, which package syscall lacks
	var st syscall.Statfs_t
	return syscall.Fstatfs(int(file.Fd()), &st) == nil && st.Flags&readOnly != 0
}
