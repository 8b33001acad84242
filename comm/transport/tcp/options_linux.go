package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long what has been sent may go unacknowledged, or find no room at the other end. While it is set, the
// kernel counts no keepalive probes, but goes by this time for them as well.
func setUserTimeout(c *net.TCPConn, limit time.Duration) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}

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
