package tcp

import (
	"net"
	"time"

	"github.com/gorun/gorun/env/keepalive"
)

// nearby is the round trip up to which no congestion control has to find out what the way is like.
const nearby = 2 * time.Millisecond

// tuned sets conn's options and returns stream, which is conn or is made of it, as the endpoint is to have it.
func (t *Transport) tuned(conn, stream net.Conn) net.Conn {
	polled := conn
	switch c := conn.(type) {
	case *net.TCPConn:
		t.setOptions(c)
		polled = pollable(c)
	case *bundle:
		for _, part := range c.conns {
			t.setOptions(part.(*net.TCPConn))
		}
		polled = pollableBundle(c)
	}
	if secured, ok := stream.(secureConn); ok {
		return pollableSecured(secured, polled)
	}
	return polled
}

func (t *Transport) setOptions(c *net.TCPConn) {
	keepalive.Set(c, !t.cfg.Near(c))
	chooseControl(c)
}
