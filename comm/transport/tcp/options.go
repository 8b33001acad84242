package tcp

import (
	"net"
	"time"

	"github.com/gorun/gorun/env/keepalive"
)

// nearby is the longest round trip of a network on which BBR does not pay.
const nearby = 2 * time.Millisecond

// tuned sets the options of b's connections. It returns stream, which is b or TLS over it, as a Pollable if possible.
func (t *Transport) tuned(b *bundle, stream net.Conn) net.Conn {
	for _, c := range b.conns {
		keepalive.Set(c, !t.cfg.Near(c))
		chooseControl(c)
	}
	return pollable(b, stream)
}
