package control

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/gorun/gorun/env/proc"
)

// allowUser returns why a connection is refused: its process belongs to another user. Where the system does not say that, only the user can
// enter the directory of the socket.
func allowUser(conn net.Conn) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a connection over %s", conn.RemoteAddr().Network())
	}
	_, uid, err := proc.PeerOf(c)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return err
	case uid != os.Geteuid() && uid != 0:
		return fmt.Errorf("it runs for user %d", uid)
	}
	return nil
}
