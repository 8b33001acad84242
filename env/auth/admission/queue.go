package admission

import (
	"container/heap"
	"container/list"
	"net"
	"net/netip"
)

// A queue holds connections, by source. It is pure: nothing here reads a clock or a connection.
type queue struct {
	limit   int
	share   int // of the limit, for each source
	n       int
	entered uint64
	by      map[netip.Prefix]*source
	order   sources
}

// A source holds the connections from one address.
type source struct {
	conns list.List // of *Conn, the oldest in front
	at    netip.Prefix
	over  int // how many connections it has beyond its share
	index int // in the heap
}

func newQueue(limit int) queue {
	return queue{limit: limit, share: max(limit/16, 1), by: make(map[netip.Prefix]*source)}
}

// push adds c. If the queue was full, it returns the connection to drop for it.
func (q *queue) push(c *Conn) (victim *Conn) {
	if q.n >= q.limit {
		victim = q.next()
	}
	s := q.by[c.source]
	if s == nil {
		s = &source{at: c.source}
		q.by[c.source] = s
	}
	q.entered++
	c.order, c.in, c.place = q.entered, q, s.conns.PushBack(c)
	q.n++
	if s.conns.Len() == 1 {
		heap.Push(&q.order, s)
	}
	q.weigh(s)
	return victim
}

func (q *queue) remove(c *Conn) {
	s := q.by[c.source]
	s.conns.Remove(c.place)
	c.in, c.place = nil, nil
	q.n--
	if s.conns.Len() == 0 {
		heap.Remove(&q.order, s.index)
		delete(q.by, s.at)
		return
	}
	q.weigh(s)
}

// next returns the connection to drop next; nil if the queue is empty.
func (q *queue) next() *Conn {
	if len(q.order) == 0 {
		return nil
	}
	return q.order[0].oldest()
}

func (q *queue) all() (conns []*Conn) {
	for _, s := range q.order {
		for e := s.conns.Front(); e != nil; e = e.Next() {
			conns = append(conns, e.Value.(*Conn))
		}
	}
	return conns
}

func (q *queue) weigh(s *source) {
	s.over = max(s.conns.Len()-q.share, 0)
	heap.Fix(&q.order, s.index)
}

func (s *source) oldest() *Conn { return s.conns.Front().Value.(*Conn) }

// sources is a heap. At the front is the source with the most connections beyond its share; of several such sources, the one
// with the oldest connection.
type sources []*source

func (s sources) Len() int { return len(s) }
func (s sources) Less(i, j int) bool {
	if s[i].over != s[j].over {
		return s[i].over > s[j].over
	}
	return s[i].oldest().order < s[j].oldest().order
}
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i]; s[i].index, s[j].index = i, j }
func (s *sources) Push(x any) {
	last := x.(*source)
	last.index = len(*s)
	*s = append(*s, last)
}
func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// sourceOf returns the source of connections from an address. All 2^64 addresses of an IPv6 network are one source, since one
// machine can have them all. So are all loopback addresses.
func sourceOf(a net.Addr) netip.Prefix {
	from, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := from.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	switch {
	case ip.IsLoopback():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip.Is6():
		bits = 64
	}
	p, _ := ip.Prefix(bits) // zero if ip is
	return p
}
