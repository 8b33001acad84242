package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func reserve(host string, port int, c claim) (*Port, error) {
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &Error{Host: host, Port: port, Err: err}
	}
	fd, err := -1, error(unix.EADDRINUSE)
	if port == 0 {
		fd, err = bindLasting(addr)
		c = exclusive
	}
	if errors.Is(err, unix.EADDRINUSE) {
		fd, err = bind(addr, c)
	}
	if err != nil {
		return nil, &Error{Host: host, Port: port, Err: err}
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, &Error{Host: host, Port: port, Err: err}
	}
	p := &Port{close: func() error { return os.NewSyscallError("close", syscall.Close(fd)) }}
	switch bound := bound.(type) {
	case *unix.SockaddrInet4:
		p.number = bound.Port
	case *unix.SockaddrInet6:
		p.number = bound.Port
	}
	return p, nil
}

// bindLasting binds to a port that the system does not give to outgoing connections.
func bindLasting(addr *net.TCPAddr) (fd int, err error) {
	first, last := lastingPorts()
	to := *addr
	for range mostTries {
		to.Port = first + rand.IntN(last-first+1)
		if fd, err = bind(&to, exclusive); !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return fd, err
}

// lastingPorts returns the ports below those of outgoing connections, or those above them, whichever are more.
func lastingPorts() (first, last int) {
	first, last = 10000, 32767 // what is below is often meant for something
	var low, high int
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return first, last
	}
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
		return first, last
	}
	if low-first >= 65535-high {
		return first, max(first, low-1)
	}
	return high + 1, 65535
}

// bind returns a socket bound to addr, for all addresses of both families if it has none.
func bind(addr *net.TCPAddr, c claim) (fd int, err error) {
	if addr.IP == nil {
		fd, err = bindTo(unix.AF_INET6, &unix.SockaddrInet6{Port: addr.Port}, c)
		if !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fd, err
		}
		addr.IP = net.IPv4zero // there is no IPv6 here
	}
	if ip4 := addr.IP.To4(); ip4 != nil {
		return bindTo(unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip4)}, c)
	}
	return bindTo(unix.AF_INET6, &unix.SockaddrInet6{
		Port: addr.Port, Addr: [16]byte(addr.IP.To16()), ZoneId: zoneID(addr.Zone)}, c)
}

func bindTo(family int, to unix.Sockaddr, c claim) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if c == shared { // connections of an earlier server may linger there
		err = share(fd)
	}
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err == nil && c == exclusive {
		err = share(fd) // from now on
	}
	if err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// share lets others bind the socket's port with SO_REUSEADDR.
func share(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }

func zoneID(zone string) uint32 {
	if iface, err := net.InterfaceByName(zone); err == nil {
		return uint32(iface.Index)
	}
	return 0
}
