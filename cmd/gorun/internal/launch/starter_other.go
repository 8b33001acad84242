//go:build !linux

package launch

import "syscall"

// attributes put a remote shell in a session of its own, as on Linux.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
