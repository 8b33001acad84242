package remote

import (
	"context"
	"os"
	"strings"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/network"
)

// newHello returns what this proxy says first.
func newHello(version string) frame.Hello {
	return frame.Hello{
		Protocol: frame.Protocol, Version: version, Addr: ownAddr(os.Getenv("SSH_CONNECTION")), Port: freePort(),
	}
}

// ownAddr returns the address of this machine that is in SSH_CONNECTION: the client's address and port, the server's address and port.
// sshd sets it; after other remote shells, the address is that on the default route. Empty: there is none.
func ownAddr(connection string) string {
	if fields := strings.Fields(connection); len(fields) == 4 {
		return fields[2]
	}
	for _, outside := range []string{"192.0.2.1", "2001:db8::1"} { // for documentation: nobody has them
		if own, err := network.FacingAddr(context.Background(), outside); err == nil {
			return own.String()
		}
	}
	return ""
}

// freePort returns a port that is free, as is the next one, since an etcd listens on both, or 0 if it finds none. It reserves neither.
func freePort() int {
	first, next, err := network.ReservePortPair("")
	if err != nil {
		return 0
	}
	_, _ = first.Close(), next.Close()
	return first.Number()
}
