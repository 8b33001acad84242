package tcpstore

import (
	"crypto/tls"
	"math"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unmeasured is the least round trip of a connection for which the system has measured none.
const unmeasured = math.MaxUint32

// RoundTrip returns the least time that a packet to the server and its acknowledgement have taken, or 0 if the system
// does not say it.
func (c *Client) RoundTrip() time.Duration {
	conn := c.conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	var least time.Duration
	if raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			if info.Min_rtt != unmeasured {
				least = time.Duration(info.Min_rtt) * time.Microsecond
			}
		}
	}) != nil {
		return 0
	}
	return least
}
