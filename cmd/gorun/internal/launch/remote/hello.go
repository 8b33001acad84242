package remote

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// newHello returns what this proxy says first.
func newHello(version string) frame.Hello {
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
// port. sshd sets it.
func serverAddr(connection string) string {
	fields := strings.Fields(connection)
	if len(fields) != 4 {
		return ""
	}
	return fields[2]
}

// Ports from which a free one is chosen: no well-known ones, and, by default, none that the system assigns.
const (
	firstPort = 20000
	lastPort  = 32000
	tries     = 100
)

// freePort returns a port that is free, as is the next one, since an etcd listens on both, or 0 if it finds none. It reserves neither.
func freePort() int {
	for range tries {
		if port := firstPort + 2*rand.IntN((lastPort-firstPort)/2); tryBoth(port) == nil {
			return port
		}
	}
	return 0
}

// tryBoth tries a port and the next one.
func tryBoth(port int) error { return errors.Join(try(port), try(port+1)) }

// try binds a port of all addresses, those of IPv4 too, for a moment. It does not set SO_REUSEADDR: with it, a port that another job has
// reserved for its rank 0, which does not listen yet, would seem free.
func try(port int) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	var addr unix.Sockaddr = &unix.SockaddrInet6{Port: port}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	} else { // this machine has no IPv6
		addr = &unix.SockaddrInet4{Port: port}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	return err
}
