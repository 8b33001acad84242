package tcp

import (
	"cmp"
	"math"
	"net"
	"time"
)

const (
	// usualRate is how many bytes a second a connection carries that has one core at each end. A network of which nothing is known
	// has that, too.
	usualRate = 10e9 / 8
	// mostByItself is how many connections a stream has at most unless more are asked for.
	mostByItself = 8
)

// A way is what is known of that between two ranks. Zero is what is not.
type way struct {
	rate   float64       // of the interface, bytes a second
	ranks  int           // that share it
	rtt    time.Duration // there and back
	window int           // bytes that a connection may have under way, its bookkeeping included
}

// connections is how many a stream has on w: so many that none need carry more than usualRate, nor have more under way than half
// of its window, which is about what bookkeeping leaves.
func (w way) connections() int {
	rate := cmp.Or(w.rate, usualRate) / float64(max(w.ranks, 1))
	n := ceil(rate / usualRate)
	if w.window > 0 {
		n = max(n, ceil(rate*w.rtt.Seconds()/(float64(w.window)/2)))
	}
	return min(max(n, 1), mostByItself)
}

func ceil(f float64) int { return int(math.Ceil(min(f, mostByItself))) }

// connections is how many the stream has that begins with first.
func (t *Transport) connections(first net.Conn) int {
	c, ok := first.(*net.TCPConn)
	switch {
	case t.cfg.Connections > 0:
		return t.cfg.Connections
	case !ok || t.cfg.Near(first):
		return 1
	}
	w := measure(c)
	w.ranks = t.cfg.Here
	return w.connections()
}
