package tcp

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mostUnsent limits the bytes that wait in the kernel to be sent. Longer queues would have left the processor's caches
// when they are sent. It does not limit the bytes that are on the network.
const mostUnsent = 128 << 10

const (
	// loopbackSegment is shorter than the segments of loopback, and longer than those of networks, jumbo frames too.
	loopbackSegment = 16 << 10
	// loopbackLimit is the coalesceLimit of loopback, where an acknowledgement comes at once: a message of 32 KiB, and
	// its header.
	loopbackLimit = 33 << 10
)

// coalesceLimit returns the length of the longest write that is worth holding back until an acknowledgement comes: many
// such writes fit into a segment. With 2.5 in a segment of Ethernet, a row of messages takes twice as long as without
// waiting.
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

// bbrIsDefault says that the system chooses BBR for new sockets.
var bbrIsDefault atomic.Bool

// WithoutBBR makes a new socket, or what a listener accepts, begin without BBR, which paces what it sends by what it
// has measured. Where the round trip is short, that halves the throughput and gains nothing, because there is no queue
// to keep short. And Linux goes on pacing a connection that has begun with BBR, also with another congestion control:
// four ranks on two processors took 4.2 ms for an all-to-all of 4 MiB instead of 1.9. WithoutBBR is for
// net.Dialer.Control and net.ListenConfig.Control.
func WithoutBBR(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		if congestionControl(int(fd)) == bbr {
			bbrIsDefault.Store(true)
			setControl(int(fd), unpaced...)
		}
	})
}

const bbr = "bbr"

var unpaced = []string{"cubic", "reno"} // reno is always allowed

// chooseControl restores BBR, if the system chooses it, where the round trip is longer than short. Elsewhere it
// replaces BBR, with which a connection may have begun, because its route says so. It does not set buffer sizes: the
// kernel adapts them to the network unless a program sets them.
func chooseControl(c *net.TCPConn, short time.Duration) {
	control(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		switch isShort := int64(info.Rtt) <= short.Microseconds(); {
		case isShort && congestionControl(fd) == bbr:
			setControl(fd, unpaced...)
		case !isShort && bbrIsDefault.Load():
			setControl(fd, bbr)
		}
	})
}

// congestionControl returns the name of a socket's congestion control, or nothing.
func congestionControl(fd int) string {
	name, _ := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION) // what is not known is not replaced
	return name
}

// setControl sets the first congestion control that this process may use.
func setControl(fd int, names ...string) {
	for _, name := range names {
		if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
			return
		}
	}
}

// control calls f with the descriptor of c. Errors do not matter: what f does only makes c faster.
func control(c *net.TCPConn, f func(fd int)) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
