package drill

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// A world is what is known about a job: what its workers have reported, and what follows from it. It has no clock, goroutine or I/O.
type world struct {
	nproc    int
	policy   Policy
	program  bool                   // the workers run the user's own: they report nothing but that they have started
	alive    func(*worker) bool     // whether its process has not ended
	workers  []*worker              // all that there ever were, in the order of their first messages
	causes   map[string][]rootCause // of restarts, as each agent says
	wrong    error                  // the first thing that has happened and must not
	timeline timeline

	victim      func(*worker) bool // which workers the fault hits; nil: there is none yet
	exitCode    int                // with which the fault ends its victims; 0: it ends none by itself
	outOfMemory bool               // that is because memory has run out
	fault       time.Time
	noticed     time.Time // when somebody else reacted to the fault; zero: not yet
	newRound    time.Time // when the first worker was in a new round; zero: not yet
	before      int       // the newest round at the time of the fault
	over        bool      // the job is to end
}

// A worker is a process in one round. It has sent its first message there.
type worker struct {
	place
	process        *os.Process
	conn           net.Conn // to it
	since          time.Time
	previous, next *worker // the same process in the previous round and in the next one; nil: it was or is in none
	computations   int
	goroutines     int    // that it had then
	first, state   int    // the state after the first computation here and after the last one that it has reported
	failure        string // why it cannot compute any more; empty: it can
	death          *death // of which it has learned by that; nil: of none
	stopping       bool   // it got SIGTERM
	gone           bool
}

// inRound returns the same process in another round.
func (k *worker) inRound(p place) *worker {
	return &worker{place: p, process: k.process, conn: k.conn, previous: k}
}

// last is the same process in the last round that it has been in.
func (k *worker) last() *worker {
	for k.next != nil {
		k = k.next
	}
	return k
}

// say sends a line to the worker.
func (k *worker) say(line string) error {
	_, err := fmt.Fprintln(k.conn, line)
	return err
}

// isAlive reports whether its process has not ended.
func (k *worker) isAlive() bool { return k.process.Signal(syscall.Signal(0)) == nil }

func (k *worker) String() string {
	return fmt.Sprintf("rank %d on node %d in round %d", k.Rank, k.Node, k.Round)
}

// receive records a worker's message. The first message identifies the worker.
func (w *world) receive(at time.Time, k *worker, m message) {
	w.follow(at, k, m.Kind)
	switch m.Kind {
	case rejoined:
		k.since = at
		k.state, k.previous.next = k.previous.state, k
		w.workers = append(w.workers, k)
		w.checkStart(k)
	case started:
		k.since = at
		w.workers = append(w.workers, k)
		w.checkStart(k)
	case computed:
		k.goroutines = m.Goroutines
		w.compute(k, m.State)
		return // as if nothing had happened
	case stuck:
		if k.failure == "" {
			k.failure, k.death = m.Error, m.Death
		}
	case wrong:
		w.fail(fmt.Errorf("%v has a wrong result: %s", k, m.Error))
	case stopping:
		k.stopping = true
	default:
		w.fail(fmt.Errorf("%v says %q", k, m.Kind))
	}
	if k.Round > w.before && !w.fault.IsZero() && w.newRound.IsZero() {
		w.newRound = at
	}
	w.notice(at, k)
}

// compute records that a worker has computed, and in what state it is now.
func (w *world) compute(k *worker, state int) {
	if state < k.state {
		w.fail(fmt.Errorf("%v is in state %d, where it was in state %d before", k, state, k.state))
	}
	if k.computations == 0 {
		k.first = state
	}
	k.computations++
	k.state = state
}

// lose records the end of a worker.
func (w *world) lose(at time.Time, k *worker) {
	w.follow(at, k, "")
	k.gone = true
	w.notice(at, k)
}

// inject begins a fault that hits the victims.
func (w *world) inject(at time.Time, victim func(*worker) bool) {
	w.fault, w.victim, w.before = at, victim, w.newest()
	w.noticed, w.newRound = time.Time{}, time.Time{}
}

// explain records why the job has used a restart, as an agent says.
func (w *world) explain(agent string, c rootCause) {
	if w.causes == nil {
		w.causes = make(map[string][]rootCause)
	}
	w.causes[agent] = append(w.causes[agent], c)
}

func (w *world) notice(at time.Time, k *worker) {
	if !w.over && w.victim != nil && !w.victim(k) && w.noticed.IsZero() {
		w.noticed = at
	}
}

// fail records the first error.
func (w *world) fail(err error) {
	if w.wrong == nil {
		w.wrong = err
	}
}

// restarts returns how many the job has used.
func (w *world) restarts() (used int) {
	for _, k := range w.in(w.newest()) {
		used = max(used, k.Restarts)
	}
	return used
}

func (w *world) newest() (round int) {
	for _, k := range w.workers {
		round = max(round, k.Round)
	}
	return round
}

// in returns the workers of a round, in the order of their ranks.
func (w *world) in(round int) (list []*worker) {
	for _, k := range w.workers {
		if k.Round == round {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *worker) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

// nodesOf returns the nodes of a round, in the order of their ranks.
func (w *world) nodesOf(round int) (nodes []int) {
	for _, k := range w.in(round) {
		nodes = append(nodes, k.Node)
	}
	return slices.Compact(nodes)
}

// anywhere stands for all nodes.
const anywhere = -1

// live returns the workers on a node that have not ended.
func (w *world) live(node int) (list []*worker) {
	for _, k := range w.workers {
		if !k.gone && k.next == nil && (node == anywhere || k.Node == node) {
			list = append(list, k)
		}
	}
	return list
}

// together reports whether all workers of these nodes compute in the newest round, and nobody else is in it.
func (w *world) together(nodes []int) bool {
	list := w.in(w.newest())
	if len(list) == 0 || len(list) != list[0].World || len(list) != len(nodes)*w.nproc {
		return false
	}
	for _, k := range list {
		if !k.busy() || !slices.Contains(nodes, k.Node) {
			return false
		}
	}
	return true
}

// busy reports whether the worker computes, as far as the drill knows.
func (k *worker) busy() bool {
	return k.computations > 0 && k.failure == "" && !k.stopping && !k.gone && k.next == nil
}

// describe describes the newest round in one line.
func (w *world) describe() string {
	list := w.in(w.newest())
	if len(list) == 0 {
		return "no worker has started"
	}
	busy, failure := 0, ""
	for _, k := range list {
		if k.busy() {
			busy++
		}
		if failure == "" && k.failure != "" {
			failure = fmt.Sprintf("; %v: %s", k, k.failure)
		}
	}
	return fmt.Sprintf("round %d on nodes %v has %d of %d workers, of which %d compute%s",
		list[0].Round, w.nodesOf(list[0].Round), len(list), list[0].World, busy, failure)
}
