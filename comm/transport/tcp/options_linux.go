package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// setOptions sets what package net has no word for. Failures do not matter: all of it only helps.
//
// The buffers are left to the kernel, which makes them as large as the way needs unless it is told a size. BBR, where it
// is the default, paces what it sends by what it has measured; between neighbours that costs half of the throughput and
// gains nothing, and there is no queue to be kept short.
func setOptions(c *net.TCPConn, far bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(d uintptr) {
		fd := int(d)
		if far {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		}
		control, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || control != "bbr" {
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
