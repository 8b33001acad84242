package tcp

import (
	"net"
	"time"
)

const (
	// lossTime is how long a machine may give no sign before it counts as lost.
	lossTime = 30 * time.Second
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
	NoticeLoss(c, !t.cfg.Near(c))
	chooseControl(c)
}

// NoticeLoss lets c end lossTime after the last sign of the other machine, whether anything is sent on it or not. far says that
// it is another machine: then c also ends when the other process has not taken what was sent to it for so long.
func NoticeLoss(c *net.TCPConn, far bool) {
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: lossTime / 3, Interval: lossTime / 6, Count: 4,
	})
	if far {
		setUserTimeout(c, lossTime)
	}
}
