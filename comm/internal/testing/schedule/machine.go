// Package schedule runs threads one at a time, in an order that it chooses, on memory of which it decides when the
// others see what one has written. So a test meets the orders in which processors of a kind may do things, also those
// that are rare, and the same ones again.
//
// A [Machine] has the threads, each a coroutine, which call it for every access to the memory that they share and for
// whatever else they do together: sleeping on a word, bytes in sockets, time. Before each access any thread may go on
// instead, or a store that waits in some thread's buffer may reach the memory (memory.go). A [Chooser] says which;
// [Exhaustive] is one.
package schedule

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"
	"unsafe"
)

// A Chooser chooses the order of a run.
type Chooser interface {
	// Next is which of those that can go on does: the index in ready. current is that of the one that was running, or -1.
	Next(ready []Actor, current int) int
	// Idle says that a thread has looked in vain.
	Idle(a Actor)
	// Pick is one of n possibilities, at least two, of which 0 is what happens mostly.
	Pick(n int) int
}

// A Machine is what threads run on. It is used for one run after the other.
type Machine struct {
	Model  Model
	Most   int                           // accesses of a run, at most
	Weaken func(Access, int) Access      // what an access at that byte of the memory is instead; nil: itself
	Trace  func(format string, a ...any) // what is done; nil: nobody asks

	// Overslept is called when a thread's sleep has lasted for its limit, and nothing else goes on.
	Overslept func(t *Thread, limit time.Duration)

	mem     []byte
	chooser Chooser
	threads []*Thread
	running *Thread
	chosen  *Thread // to go on next
	steps   int
	now     time.Duration
	yields  int
	sockets map[int]int // bytes in each; -1: it has ended
	over    bool
	failure error

	history []write
	ready   []Actor // room
	free    []int   // room
}

// A Thread is one of those that a machine runs.
type Thread struct {
	Name string
	// DiesAt is the access before which it stops for ever, from 1; 0: it does not.
	DiesAt int

	index    int
	resume   func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	accesses int
	dead     bool
	ended    bool
	idle     bool          // it has looked in vain, and nothing has changed since
	until    func() bool   // it cannot go on before; nil: it can
	limit    time.Duration // of its sleep; 0: none
	deadline time.Duration

	view
}

// An Actor is a thread, or the buffer that its stores wait in.
type Actor struct {
	Thread int
	Buffer bool
	Idle   bool // the thread has looked in vain, and nothing has changed since
}

// stopped is what unwinds a thread when the run is over.
type stopped struct{}

// New is a machine with that memory, which is all zero.
func New(mem []byte, model Model) *Machine {
	return &Machine{Model: model, Most: 100_000, mem: mem, sockets: map[int]int{}}
}

// Run runs the threads that begin adds, in an order that c chooses, until all have ended, and leaves the memory zero.
// The error says why they have not, or is what [Machine.Fail] has been told first.
func (m *Machine) Run(c Chooser, begin func()) error {
	m.chooser, m.over, m.failure, m.steps, m.now, m.yields, m.chosen = c, false, nil, 0, 0, 0, nil
	clear(m.sockets)
	begin()
	for m.failure == nil {
		t := m.chosen
		if m.chosen = nil; t == nil {
			if t = m.choose(nil); t == nil {
				break
			}
		}
		m.running = t
		t.resume()
	}
	m.end()
	return m.failure
}

// end unwinds what has not ended, and empties the memory.
func (m *Machine) end() {
	m.over = true
	for _, t := range m.threads {
		m.running = t
		t.stop()
	}
	m.running, m.threads = nil, m.threads[:0]
	for _, w := range m.history {
		clear(m.mem[w.at : w.at+w.n])
	}
	m.history = m.history[:0]
}

// Go adds a thread that runs f.
func (m *Machine) Go(name string, f func()) *Thread {
	t := &Thread{Name: name, index: len(m.threads)}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.ended = true
			if r := recover(); r != nil && r != (stopped{}) {
				m.Fail(fmt.Errorf("%s: panic: %v\n%s", name, r, debug.Stack()))
			}
		}()
		f()
	})
	m.threads = append(m.threads, t)
	return t
}

// Fail ends the run: the order of accesses has shown a defect.
func (m *Machine) Fail(err error) {
	if m.failure == nil && !m.over {
		m.failure = err
	}
}

// Running is the thread that runs, or nil.
func (m *Machine) Running() *Thread { return m.running }

// Steps is how many accesses there have been.
func (m *Machine) Steps() int { return m.steps }

// Dead reports whether t has stopped for ever.
func (t *Thread) Dead() bool { return t.dead }

// Ended reports whether t has returned.
func (t *Thread) Ended() bool { return t.ended }

// step is before every access: others may go first. It returns false if the run is over, and the thread unwinds.
func (m *Machine) step() bool {
	t := m.running
	if m.over || t == nil {
		return false
	}
	if m.steps++; m.steps > m.Most {
		m.Fail(fmt.Errorf("no end after %d accesses", m.Most))
	}
	if t.accesses++; t.accesses == t.DiesAt {
		m.trace("dies")
		t.dead = true
	}
	m.pass(t)
	t.idle = false
	return true
}

// pass lets t go on when it is chosen to.
func (m *Machine) pass(t *Thread) {
	if m.failure == nil {
		if m.chosen = m.choose(t); m.chosen == t {
			m.chosen = nil
			return
		}
	}
	if !t.yield(struct{}{}) {
		panic(stopped{})
	}
}

// choose lets stores reach the memory until it is a thread's turn, and returns that. It is nil if no thread can go on.
func (m *Machine) choose(last *Thread) *Thread {
	for {
		m.ready = m.ready[:0]
		current := -1
		for _, t := range m.threads {
			if !t.ended && !t.dead && (t.until == nil || t.until()) {
				if t == last {
					current = len(m.ready)
				}
				m.ready = append(m.ready, Actor{Thread: t.index, Idle: t.idle})
			}
		}
		for _, t := range m.threads {
			if len(t.buffer) > 0 {
				m.ready = append(m.ready, Actor{Thread: t.index, Buffer: true})
			}
		}
		if len(m.ready) == 0 {
			if !m.oversleep() {
				return nil
			}
			continue
		}
		next := m.ready[m.chooser.Next(m.ready, current)]
		t := m.threads[next.Thread]
		if !next.Buffer {
			return t
		}
		m.drainOne(t)
	}
}

// oversleep ends the sleep that has the shortest limit; of several, the one that began first. It reports whether
// anything goes on.
func (m *Machine) oversleep() bool {
	var first *Thread
	stuck := ""
	for _, t := range m.threads {
		if t.ended || t.dead {
			continue
		}
		stuck += " " + t.Name
		if t.limit > 0 && (first == nil || t.limit < first.limit || t.limit == first.limit && t.deadline < first.deadline) {
			first = t
		}
	}
	if first == nil {
		if stuck != "" {
			m.Fail(fmt.Errorf("stuck:%s", stuck))
		}
		return false
	}
	m.now = max(m.now, first.deadline)
	m.trace("%s has slept for %v", first.Name, first.limit)
	if m.Overslept != nil {
		m.Overslept(first, first.limit)
	}
	first.until = nil
	return true
}

// Idle is called by a thread that has looked in vain: others had better go on.
func (m *Machine) Idle() {
	if t := m.running; t != nil && !m.over {
		t.idle = true
		m.chooser.Idle(Actor{Thread: t.index})
	}
}

// Pick is one of n possibilities, of which 0 is what happens mostly.
func (m *Machine) Pick(n int) int {
	if n < 2 || m.over {
		return 0
	}
	return m.chooser.Pick(n)
}

func (m *Machine) trace(format string, a ...any) {
	if m.Trace != nil && !m.over {
		name := "-"
		if m.running != nil {
			name = m.running.Name
		}
		m.Trace("%6d %s: %s", m.steps, name, fmt.Sprintf(format, a...))
	}
}

// At is where in the memory p is, if it is.
func (m *Machine) At(p unsafe.Pointer) (at int, ok bool) {
	off := uintptr(p) - uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
	return int(off), off < uintptr(len(m.mem))
}
