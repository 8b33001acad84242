package tcp

import (
	"net"
	"sync/atomic"
	"syscall"
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

// beganWithBBR says that BBR is what the system chooses for new sockets.
var beganWithBBR atomic.Bool

// WithoutBBR makes a new socket, or what a listener accepts, begin without BBR, which paces what it sends by what it has measured. On a short
// network that halves the throughput and gains nothing, because there is no queue to keep short. And a connection that has begun with BBR is
// paced for ever, also by another congestion control: four ranks on two processors took 4.2 ms for an all-to-all of 4 MiB instead of 1.9.
// WithoutBBR is for net.Dialer.Control and net.ListenConfig.Control.
func WithoutBBR(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		if name, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil && name == bbr {
			beganWithBBR.Store(true)
			setControl(int(fd), "cubic", "reno") // reno is always allowed
		}
	})
}

const bbr = "bbr"

// chooseControl restores BBR, if the system chooses it, where the round trip is long. It does not set buffer sizes: the kernel adapts them to
// the network unless a program sets them.
func chooseControl(c *net.TCPConn) {
	if !beganWithBBR.Load() {
		return
	}
	control(c, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && int64(info.Rtt) > shortRoundTrip.Microseconds() {
			setControl(fd, bbr)
		}
	})
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
