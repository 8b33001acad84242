package tcp

import (
	"net"
	"time"

	"github.com/gorun/gorun/env/keepalive"
)

// nearby is the longest round trip of a network on which BBR does not pay.
const nearby = 2 * time.Millisecond

// tuned sets the options of conn. It returns stream, which is conn or TLS over it, as a Pollable if possible.
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
