package tcp

import (
	"net"
	"time"
)

const (
	// userTimeout is how long a peer's machine may leave what has been sent to it unacknowledged, or have no room for
	// more: longer than a process is likely to be stopped and go on.
	userTimeout = 2 * time.Minute
	// nearby is the round trip up to which no congestion control has to find out what the way is like.
	nearby = 2 * time.Millisecond
)

// tuned sets conn's options and returns stream, which is conn or is made of it, as the endpoint is to have it.
func (t *Transport) tuned(conn, stream net.Conn) net.Conn {
	switch c := conn.(type) {
	case *net.TCPConn:
		t.setOptions(c)
		if stream == conn {
			return pollable(c)
		}
	case *bundle:
		for _, part := range c.conns {
			t.setOptions(part.(*net.TCPConn))
		}
		if stream == conn {
			return pollableBundle(c)
		}
	}
	return stream
}

func (t *Transport) setOptions(c *net.TCPConn) {
	// Notice a vanished host on an idle connection within half a minute.
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4,
	})
	setOptions(c, !t.cfg.Near(c))
}
