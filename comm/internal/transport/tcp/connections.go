package tcp

import (
	"cmp"
	"math"
	"net"
	"time"
)

const (
	// usualRate is how many bytes a second one connection carries, with one core at each end. It is also assumed for a
	// network whose speed is not known.
	usualRate = 10e9 / 8
	// mostAutomatic is the most connections of a stream, unless the user asks for more.
	mostAutomatic = 8
)

// A link is what is known of the network between two ranks. A zero field is not known.
type link struct {
	rate   float64       // of the interface, bytes a second
	ranks  int           // that share the interface
	rtt    time.Duration // round trip
	window int           // the most bytes that a connection may have under way, with the kernel's bookkeeping
}

// connections is how many connections a stream needs on l. None of them has to carry more than usualRate, or to have
// more under way than half of its window: bookkeeping takes about the other half.
func (l link) connections() int {
	rate := cmp.Or(l.rate, usualRate) / float64(max(l.ranks, 1))
	n := ceil(rate / usualRate)
	if l.window > 0 {
		n = max(n, ceil(rate*l.rtt.Seconds()/(float64(l.window)/2)))
	}
	return min(max(n, 1), mostAutomatic)
}

func ceil(f float64) int { return int(math.Ceil(min(f, mostAutomatic))) }

// connections is how many connections the stream has that begins with first.
func (t *Transport) connections(first *net.TCPConn) int {
	switch {
	case t.cfg.Connections > 0:
		return t.cfg.Connections
	case t.cfg.Near(first):
		return 1
	}
	l := measure(first)
	l.ranks = t.cfg.Here
	return l.connections()
}
