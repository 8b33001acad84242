package proc

import (
	"os"
	"syscall"
)

// PeerOf returns the process at the other end of a Unix socket, and its user.
func PeerOf(conn syscall.Conn) (pid, uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	switch {
	case err != nil:
		return 0, 0, err
	case credErr != nil:
		return 0, 0, os.NewSyscallError("getsockopt", credErr)
	}
	return int(cred.Pid), int(cred.Uid), nil
}
