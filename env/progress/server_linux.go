package progress

import (
	"net"
	"syscall"
)

// serverOf returns the process that listens at the other end of a connection; 0: it is not known.
func serverOf(conn net.Conn) (pid int) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
