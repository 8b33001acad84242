package control

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// allowUser returns why a connection is refused: its process belongs to another user.
func allowUser(conn net.Conn) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a connection over %s", conn.RemoteAddr().Network())
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if credErr != nil {
		return os.NewSyscallError("getsockopt", credErr)
	}
	if uid := int(cred.Uid); uid != os.Geteuid() && uid != 0 {
		return fmt.Errorf("it runs for user %d", uid)
	}
	return nil
}
