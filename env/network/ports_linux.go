package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func reservePort(host string, port int, with sharing) (*Port, error) {
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	fd := -1
	if port == 0 {
		fd, err = bindAny(addr)
	} else {
		fd, err = bindPort(addr, with)
	}
	if err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	p := &Port{close: sync.OnceValue(func() error { return os.NewSyscallError("close", syscall.Close(fd)) })}
	switch bound := bound.(type) {
	case *unix.SockaddrInet4:
		p.number = bound.Port
	case *unix.SockaddrInet6:
		p.number = bound.Port
	}
	return p, nil
}

// portRange is the file with the first and the last port of outgoing connections.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// bindAny binds to a port that the system does not give to outgoing connections, or to one that the system chooses if it finds none.
func bindAny(addr *net.TCPAddr) (fd int, err error) {
	text, _ := os.ReadFile(portRange) // without it, Linux's default counts
	first, count := lastingPorts(string(text))
	to := *addr
	for tries := 0; count > 0 && tries < mostTries; tries++ {
		to.Port = first + rand.IntN(count)
		if fd, err = bindPort(&to, exclusive); !errors.Is(err, unix.EADDRINUSE) {
			return fd, err
		}
	}
	return bindPort(addr, exclusive)
}

// lastingPorts returns the first of the ports below those of outgoing connections, or above them, whichever are more, and how many there are. text
// is the content of portRange.
func lastingPorts(text string) (first, count int) {
	low, high := 32768, 60999 // Linux's default
	var set [2]int
	if n, err := fmt.Sscan(text, &set[0], &set[1]); n == 2 && err == nil {
		low, high = set[0], set[1]
	}
	const least = 10000 // what is below is often meant for something
	from := max(high+1, least)
	below, above := max(low-least, 0), max(highest-from, 0) // no pair begins with the highest
	if below >= above {
		return least, below
	}
	return from, above
}

// bindPort returns a socket bound to addr, for all addresses of both families if it has none.
func bindPort(addr *net.TCPAddr, with sharing) (fd int, err error) {
	if addr.IP == nil {
		fd, err = bindPortTo(unix.AF_INET6, &unix.SockaddrInet6{Port: addr.Port}, with)
		if !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fd, err
		}
		addr.IP = net.IPv4zero // there is no IPv6 here
	}
	if ip4 := addr.IP.To4(); ip4 != nil {
		return bindPortTo(unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip4)}, with)
	}
	return bindPortTo(unix.AF_INET6, &unix.SockaddrInet6{
		Port: addr.Port, Addr: [16]byte(addr.IP.To16()), ZoneId: zoneID(addr.Zone)}, with)
}

func bindPortTo(family int, to unix.Sockaddr, with sharing) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if with == shared { // connections of an earlier server may linger there
		err = sharePort(fd)
	}
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err == nil && with == exclusive {
		err = sharePort(fd) // the system looks for conflicts when a port is bound: others may bind and listen from now on
	}
	if err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// sharePort lets others bind the socket's port with SO_REUSEADDR.
func sharePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }

func zoneID(zone string) uint32 {
	if iface, err := net.InterfaceByName(zone); err == nil {
		return uint32(iface.Index)
	}
	return 0
}
