package keepalive

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// longestRetransmission is the longest time between two retransmissions. The kernel looks at the limit only when it retransmits, and doubles
// that time each time: without a bound, on a slow network, to a minute and more. Kernels before 6.15 have no bound to set.
const longestRetransmission = 5 * time.Second

// setUserTimeout limits how long sent data may stay unacknowledged, or find no room at the other end. While it is set, the kernel
// does not count keepalive probes, but applies this limit to them too.
func setUserTimeout(c *net.TCPConn, limit time.Duration) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
			if limit > 0 {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(longestRetransmission.Milliseconds()))
			}
		})
	}
}
