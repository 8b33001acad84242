package reach

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// mtu returns the longest packets that this machine sends on a connection; 0: it is not known.
func mtu(conn net.Conn) (bytes int) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = int(info.Pmtu)
		}
	})
	return bytes
}
