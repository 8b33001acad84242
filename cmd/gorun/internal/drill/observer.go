package drill

import (
	"fmt"
	"time"
)

// An observer follows a job: what its workers report, how it reacts to the fault, what agents say, and the first thing that has gone wrong.
// It has no clock, goroutine or I/O.
type observer struct {
	world
	replace  bool // with --on-failure=replace
	timeline timeline
	fault    fault
	causes   map[int]rootCause // of each restart

	// memoryWasShort reports whether the kernel has ended any process of this machine for want of memory since the drill began. All that
	// gorun knows is their number, so that it takes a worker that is killed meanwhile for one of them.
	memoryWasShort func() bool

	wrong    error     // the first thing that has gone wrong
	finished time.Time // when the job was asked to end; zero: not yet. What happens later has nothing to do with the fault
}

func newObserver(nproc int, p Policy) *observer {
	return &observer{world: world{nproc: nproc, alive: (*worker).isAlive}, replace: p == Replace, causes: make(map[int]rootCause), memoryWasShort: func() bool { return false }}
}

// fail records the first error.
func (o *observer) fail(err error) {
	if o.wrong == nil {
		o.wrong = err
	}
}

// inject begins a fault.
func (o *observer) inject(at time.Time, f fault) {
	f.at, f.before = at, o.newest()
	o.fault = f
}

// receive records a worker's message. The first message identifies the worker.
func (o *observer) receive(at time.Time, k *worker, m message) {
	o.follow(at, k, m.Kind)
	switch m.Kind {
	case started, rejoined:
		k.since = at
		o.add(k)
		o.fail(o.checkStart(k))
	case computed:
		o.fail(k.compute(m.State, m.Goroutines))
		return // as if nothing had happened
	case stuck:
		if k.failure == "" {
			k.failure, k.death = m.Error, m.Death
		}
	case wrong:
		o.fail(fmt.Errorf("%v has a wrong result: %s", k, m.Error))
	case stopping:
		k.stopping = true
	default:
		o.fail(fmt.Errorf("%v says %q", k, m.Kind))
	}
	o.react(at, k)
}

// lose records the end of a worker, in whichever round that was.
func (o *observer) lose(at time.Time, k *worker) {
	k = k.last()
	o.follow(at, k, "")
	k.gone = true
	o.react(at, k)
}

// react records that something has happened to a worker, which may be because of the fault.
func (o *observer) react(at time.Time, k *worker) {
	if o.finished.IsZero() {
		o.fault.react(at, k)
	}
}

// states are what workers do after they have sent a message; empty: it changes nothing.
var states = map[kind]State{started: Joining, rejoined: Joining, computed: Computing, stuck: Waiting, stopping: Stopping}

// follow records in the timeline what a worker does from now on. No message means that it has ended.
func (o *observer) follow(at time.Time, k *worker, m kind) {
	state, known := states[m]
	if !known && m != "" {
		return
	}
	t := o.timeline.workers(k.Node, k.Local)
	if state == Computing && t.state() == Suspended { // it has said so before
		return
	}
	t.set(at, k.span(state))
}
