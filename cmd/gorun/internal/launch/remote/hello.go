package remote

import (
	"cmp"
	"errors"
	"fmt"
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
		Addr: ownAddr(os.Getenv("SSH_CONNECTION")), Port: freePort(),
	}
}

// ownAddr returns the address of this machine that is in SSH_CONNECTION: the client's address and port, the server's address and port.
// sshd sets it; after other remote shells, the address is that on the default route. Empty: there is none.
func ownAddr(connection string) string {
	if fields := strings.Fields(connection); len(fields) == 4 {
		return fields[2]
	}
	// These addresses are for documentation: nobody has them.
	v4 := sourceTo(unix.AF_INET, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}})
	return cmp.Or(v4, sourceTo(unix.AF_INET6, &unix.SockaddrInet6{Port: 9, Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}}))
}

// sourceTo returns the address from which this machine sends to another one; empty: it cannot. Nothing is sent. Package env/addr does this
// with package net, for which a proxy has no time.
func sourceTo(family int, other unix.Sockaddr) string {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	if err := unix.Connect(fd, other); err != nil {
		return ""
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return ""
	}
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		return fmt.Sprintf("%d.%d.%d.%d", own.Addr[0], own.Addr[1], own.Addr[2], own.Addr[3])
	case *unix.SockaddrInet6:
		words := make([]string, 8)
		for i := range words {
			words[i] = fmt.Sprintf("%x", int(own.Addr[2*i])<<8|int(own.Addr[2*i+1]))
		}
		return strings.Join(words, ":")
	}
	return ""
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
