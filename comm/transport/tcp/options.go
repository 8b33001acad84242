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
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return stream
	}
	// Notice a vanished host on an idle connection within half a minute.
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4,
	})
	setOptions(c, !t.cfg.Near(conn))
	if stream == conn {
		return pollable(c)
	}
	return stream
}
