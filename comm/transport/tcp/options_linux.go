package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// shortRoundTrip is the longest round trip of a network on which BBR does not pay.
const shortRoundTrip = 2 * time.Millisecond

// mostUnsent limits the bytes that wait in the kernel to be sent. Longer queues would have left the processor's caches when they are sent. It
// does not limit the bytes that are on the network.
const mostUnsent = 128 << 10

const (
	// loopbackSegment is shorter than the segments of loopback, and longer than those of networks, jumbo frames too.
	loopbackSegment = 16 << 10
	// loopbackLimit is the coalesceLimit of loopback, where an acknowledgement comes at once: a message of 32 KiB, and its header.
	loopbackLimit = 33 << 10
)

// coalesceLimit returns the length of the longest write that is worth holding back until an acknowledgement comes: many such writes fit into a
// segment. With 2.5 in a segment of Ethernet, a row of messages takes twice as long as without waiting.
func coalesceLimit(c *net.TCPConn) (most int) {
	control(c, func(fd int) {
		segment, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		switch {
		case err != nil:
		case segment >= loopbackSegment:
			most = loopbackLimit
		default:
			most = segment / 8
		}
	})
	return most
}

func limitUnsent(c *net.TCPConn) {
	control(c, func(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsent) })
}

// chooseControl replaces BBR by another congestion control if the round trip is short. BBR paces what it sends by what it has measured: here
// that halves the throughput and gains nothing, because there is no queue to keep short. chooseControl does not set buffer sizes: the kernel
// adapts them to the network unless a program sets them.
func chooseControl(c *net.TCPConn) {
	control(c, func(fd int) {
		name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || name != "bbr" {
			return
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || int64(info.Rtt) > shortRoundTrip.Microseconds() {
			return
		}
		for _, other := range []string{"cubic", "reno"} { // reno is always allowed
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, other) == nil {
				return
			}
		}
	})
}

// control calls f with the descriptor of c. Errors do not matter: what f does only makes c faster.
func control(c *net.TCPConn, f func(fd int)) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
