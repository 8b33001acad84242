package remote

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// NewHello returns what this agent says first.
func NewHello(version string) frame.Hello {
	name, err := os.Hostname()
	if err != nil {
		name = "" // the launcher has the user's name for it
	}
	return frame.Hello{
		Protocol: frame.Protocol, Version: version, System: runtime.GOOS + "/" + runtime.GOARCH, Host: name,
		Addr: serverAddr(os.Getenv("SSH_CONNECTION")), Port: freePort(),
	}
}

// serverAddr returns the address of this machine that is in SSH_CONNECTION: the client's address and port, the server's address and
// port. sshd sets it. A link-local address is of no use to others.
func serverAddr(connection string) string {
	fields := strings.Fields(connection)
	if len(fields) != 4 {
		return ""
	}
	a, err := netip.ParseAddr(fields[2])
	if err != nil || a.IsLinkLocalUnicast() || a.IsUnspecified() {
		return ""
	}
	return a.Unmap().String()
}

// Ports from which a free one is chosen: no well-known ones, and, by default, none that the system assigns.
const (
	firstPort = 20000
	lastPort  = 32000
	tries     = 100
)

// freePort returns a port on which nobody listens, nor on the next one: an etcd takes both. 0: there is none.
func freePort() int {
	for range tries {
		port := firstPort + 2*rand.IntN((lastPort-firstPort)/2)
		if errors.Join(try(port), try(port+1)) == nil {
			return port
		}
	}
	return 0
}

// try listens for a moment.
func try(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
