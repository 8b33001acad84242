package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// chooseControl replaces BBR, where it is the default, between neighbours. It paces what it sends by what it has measured; there
// that costs half of the throughput and gains nothing, and there is no queue to be kept short. The buffers are left to the
// kernel, which makes them as large as the way needs unless it is told a size.
func chooseControl(c *net.TCPConn) {
	control(c, func(fd int) {
		name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || name != "bbr" {
			return
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || int64(info.Rtt) > nearby.Microseconds() {
			return
		}
		for _, other := range []string{"cubic", "reno"} { // the second is always allowed
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, other) == nil {
				return
			}
		}
	})
}

// control has set set options for which package net has no word. Failures do not matter: all of them only help.
func control(c *net.TCPConn, set func(fd int)) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { set(int(fd)) })
	}
}
