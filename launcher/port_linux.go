package launcher

import (
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReservePort reserves a TCP port on an address of this machine, or on all its addresses if host is empty.
// Port 0 lets the system choose. Host is an address or a name. A port that cannot be had is a *PortError.
func ReservePort(host string, port int) (*Port, error) {
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	fd, err := bind(addr)
	if err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, &PortError{Host: host, Port: port, Err: err}
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

// bind returns a socket bound to addr, for all addresses of both families if it has none.
func bind(addr *net.TCPAddr) (fd int, err error) {
	if addr.IP == nil {
		fd, err = bindTo(unix.AF_INET6, &unix.SockaddrInet6{Port: addr.Port})
		if !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fd, err
		}
		addr.IP = net.IPv4zero // there is no IPv6 here
	}
	if ip4 := addr.IP.To4(); ip4 != nil {
		return bindTo(unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip4)})
	}
	return bindTo(unix.AF_INET6, &unix.SockaddrInet6{
		Port: addr.Port, Addr: [16]byte(addr.IP.To16()), ZoneId: zoneID(addr.Zone)})
}

func bindTo(family int, to unix.Sockaddr) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

func zoneID(zone string) uint32 {
	if iface, err := net.InterfaceByName(zone); err == nil {
		return uint32(iface.Index)
	}
	return 0
}
