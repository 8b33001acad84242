package cost

import (
	"container/heap"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/plan"
)

// A moment is a time in picoseconds.
type moment int64

const nanosecond moment = 1000

func of(d time.Duration) moment            { return moment(d) * nanosecond }
func ofBytes(n, gap int) moment            { return moment(n) * moment(gap) }
func (m moment) toDuration() time.Duration { return time.Duration((m + nanosecond - 1) / nanosecond) }

// A simulation lets ranks act one after the other, in order of time.
type simulation struct {
	*System
	inPlace bool
	ranks   []rank
	arrived map[pair][]moment // by sender and receiver: from when on chunks can be received, oldest first

	processors [][]moment      // by kernel: when each is free; nil: each rank has its own
	sleepy     []bool          // by kernel: it has more ranks than processors
	sends      []moment        // by machine: when its link has sent everything so far
	receives   []moment        // by machine: the same of receiving
	streams    map[pair]moment // inside a machine: when all that one rank has sent to another so far has left
	events     queue
	pushed     int // events
}

// A pair is a sender and a receiver.
type pair struct{ from, to int32 }

// A rank is how far a rank has come.
type rank struct {
	plan      plan.Plan
	out, done cursor // what it sends next, and merges next
	free      moment // it has acted until then
	waiting   bool   // for a message that has not arrived
}

// A cursor is a position in a plan: a step, and so many bytes of its message.
type cursor struct{ step, at int }

func (c cursor) rest(r plan.Range) plan.Range { return plan.Range{Lo: r.Lo + c.at, Hi: r.Hi} }
func (c cursor) isAfter(d cursor) bool        { return c.step > d.step || c.step == d.step && c.at > d.at }

// take returns the next bytes of r, at most n, and moves c behind them.
func (c *cursor) take(r plan.Range, n int) plan.Range {
	p := c.rest(r)
	if p.Len() > n {
		p.Hi = p.Lo + n
		c.at += n
	} else {
		*c = cursor{step: c.step + 1}
	}
	return p
}

func newSimulation(s *System, plans []plan.Plan, inPlace bool) *simulation {
	m := &simulation{System: s, inPlace: inPlace, arrived: map[pair][]moment{}, streams: map[pair]moment{}}
	machines := slices.Max(s.Machines) + 1
	m.sends, m.receives = make([]moment, machines), make([]moment, machines)
	ranks := make([]int, len(s.Processors))
	for r, p := range plans {
		m.ranks = append(m.ranks, rank{plan: p})
		ranks[s.Kernels[r]]++
	}
	for k, n := range s.Processors {
		m.processors = append(m.processors, make([]moment, n))
		m.sleepy = append(m.sleepy, n > 0 && ranks[k] > n)
	}
	return m
}

func (m *simulation) run() (time.Duration, bool) {
	for r := range m.ranks {
		m.schedule(r)
	}
	for len(m.events) > 0 {
		e := heap.Pop(&m.events).(*event)
		if e.message != nil {
			m.arrive(e.message, e.at)
			continue
		}
		m.act(e)
		m.schedule(e.rank)
	}
	var last moment
	for i := range m.ranks {
		r := &m.ranks[i]
		if r.waiting {
			return 0, false
		}
		last = max(last, r.free)
	}
	return last.toDuration(), true
}

// An event is that a message arrives, or that a rank can act: send, if it may, and otherwise receive or copy.
type event struct {
	at      moment
	number  int // of all events: at the same moment, they happen in this order
	message *message
	rank    int
	sends   bool
}

// schedule makes an event of what rank does next, unless it has come to its end or has to wait for a message that has not arrived.
func (m *simulation) schedule(id int) {
	r := &m.ranks[id]
	for r.done.step < len(r.plan) && r.plan[r.done.step].From == plan.None {
		r.done = cursor{step: r.done.step + 1}
	}
	e := &event{at: r.free, rank: id, sends: m.maySend(id)}
	if !e.sends {
		if r.done.step == len(r.plan) {
			return
		}
		if s := &r.plan[r.done.step]; !isCopy(id, s) {
			from := m.arrived[pair{int32(s.From), int32(id)}]
			if r.waiting = len(from) == 0; r.waiting {
				return
			}
			e.at = max(e.at, from[0])
		}
	}
	m.push(e)
}

func isCopy(id int, s *plan.Step) bool { return s.To == id && s.From == id }

// maySend moves the rank to its next chunk to send, and reports whether the bytes of that are final.
func (m *simulation) maySend(id int) bool {
	r := &m.ranks[id]
	for ; r.out.step < len(r.plan) && r.out.step <= r.done.step+mostSteps; r.out = (cursor{step: r.out.step + 1}) {
		s := &r.plan[r.out.step]
		switch {
		case isCopy(id, s) && r.out.step >= r.done.step:
			return false
		case s.To == plan.None || isCopy(id, s):
			continue
		case !r.out.isAfter(r.done):
			return true
		case s.Send.Len() == 0: // says that the steps before it have been done
			return false
		}
		at := r.out
		return !m.inPlace || !r.merges(at.take(s.Send, m.Chunk), r.out.step)
	}
	return false
}

// merges reports whether steps before step will still change something of what.
func (r *rank) merges(what plan.Range, step int) bool {
	for at := r.done; at.step < step; at = (cursor{step: at.step + 1}) {
		if s := &r.plan[at.step]; s.From != plan.None && at.rest(s.Recv).Overlaps(what) {
			return true
		}
	}
	return false
}

func (m *simulation) act(e *event) {
	r := &m.ranks[e.rank]
	if e.sends {
		s := &r.plan[r.out.step]
		m.send(e, s.To, r.out.take(s.Send, m.Chunk).Len())
		return
	}
	s := &r.plan[r.done.step]
	if isCopy(e.rank, s) {
		m.work(e, ofBytes(s.Recv.Len(), m.Combine))
		r.done = cursor{step: r.done.step + 1}
		return
	}
	n := r.done.take(s.Recv, m.Chunk).Len()
	l, from := m.link(s.From, e.rank), pair{int32(s.From), int32(e.rank)}
	m.arrived[from] = m.arrived[from][1:]
	cost := of(l.Overhead) + ofBytes(n, l.Copy)
	if s.Merge != plan.Replace {
		cost += ofBytes(n, m.Combine)
	}
	if m.sleepy[m.Kernels[e.rank]] && e.at > r.free {
		cost += of(l.Wakeup)
	}
	m.work(e, cost)
}

// work keeps the rank and a processor busy for so long from the event on, or as soon as there is a processor. It returns when that begins.
func (m *simulation) work(e *event, long moment) (start moment) {
	r, start := &m.ranks[e.rank], e.at
	if all := m.processors[m.Kernels[e.rank]]; len(all) > 0 {
		first := slices.Index(all, slices.Min(all))
		start = max(start, all[first])
		all[first] = start + long
	}
	r.free = start + long
	return start
}

// A message is a chunk that has been sent.
type message struct {
	from, to     int
	n            int    // bytes
	copies, wire moment // how long a processor copies it, and how long the wire of the sender carries it
}

// send sends n bytes to another rank. Its processor copies some of them while the wire is busy with others.
func (m *simulation) send(e *event, to, n int) {
	l := m.link(e.rank, to)
	overhead := of(l.Overhead)
	msg := &message{from: e.rank, to: to, n: n, copies: ofBytes(n, l.Copy), wire: ofBytes(n, l.Gap)}
	first := m.work(e, overhead+msg.copies) + overhead
	if from := m.Machines[e.rank]; from != m.Machines[to] {
		msg.wire = ofBytes(n, m.gap(from))
		first = max(first, m.sends[from])
		m.sends[from] = first + msg.wire
	} else if msg.wire > 0 {
		stream := pair{int32(e.rank), int32(to)}
		first = max(first, m.streams[stream])
		m.streams[stream] = first + msg.wire
	}
	m.push(&event{at: first + of(l.Latency), message: msg})
}

// arrive lets the first byte of a message arrive. A receiver to which bytes come slower than it copies them begins so late that it need
// not wait in between.
func (m *simulation) arrive(msg *message, first moment) {
	slower := msg.wire // of the two links that carry it
	if at := m.Machines[msg.to]; at != m.Machines[msg.from] {
		wire := ofBytes(msg.n, m.gap(at))
		first = max(first, m.receives[at])
		m.receives[at] = first + wire
		slower = max(slower, wire)
	}
	key := pair{int32(msg.from), int32(msg.to)}
	m.arrived[key] = append(m.arrived[key], first+max(slower-msg.copies, 0))
	if m.ranks[msg.to].waiting {
		m.schedule(msg.to)
	}
}

// A queue has events, the first one at its head.
type queue []*event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(*event)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func (m *simulation) push(e *event) {
	m.pushed++
	e.number = m.pushed
	heap.Push(&m.events, e)
}
