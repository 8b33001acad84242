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
	nproc   int
	alive   func(*worker) bool // whether its process has not ended
	workers []*worker          // all that there ever were, in the order of their first messages
	wrong   error              // the first thing that has happened and must not

	victim  func(*worker) bool // which workers the fault hits; nil: there is none yet
	fault   time.Time
	noticed time.Time // when somebody else reacted to the fault; zero: not yet
	before  int       // the newest round at the time of the fault
}

// A worker is a process that has sent its first message.
type worker struct {
	place
	process      *os.Process
	conn         net.Conn // to it
	computations int
	failure      string // why it cannot compute any more; empty: it can
	stopping     bool   // it got SIGTERM
	gone         bool
}

// finish asks the worker, and so all workers of its round, to end successfully.
func (k *worker) finish() error {
	_, err := fmt.Fprintln(k.conn, "finish")
	return err
}

// isAlive reports whether its process has not ended.
func (k *worker) isAlive() bool { return k.process.Signal(syscall.Signal(0)) == nil }

func (k *worker) String() string {
	return fmt.Sprintf("rank %d on node %d in round %d", k.Rank, k.Node, k.Round)
}

// receive records a worker's message. The first message identifies the worker.
func (w *world) receive(at time.Time, k *worker, m message) {
	switch m.Kind {
	case started:
		w.workers = append(w.workers, k)
		w.checkStart(k)
	case computed:
		k.computations++
		return // as if nothing had happened
	case stuck:
		k.failure = m.Error
	case wrong:
		w.fail(fmt.Errorf("%v has a wrong result: %s", k, m.Error))
	case stopping:
		k.stopping = true
	default:
		w.fail(fmt.Errorf("%v says %q", k, m.Kind))
	}
	w.notice(at, k)
}

// lose records the end of a worker.
func (w *world) lose(at time.Time, k *worker) {
	k.gone = true
	w.notice(at, k)
}

// inject begins a fault that hits the victims.
func (w *world) inject(at time.Time, victim func(*worker) bool) {
	w.fault, w.victim, w.before = at, victim, w.newest()
}

func (w *world) notice(at time.Time, k *worker) {
	if w.victim != nil && !w.victim(k) && w.noticed.IsZero() {
		w.noticed = at
	}
}

// fail records the first error.
func (w *world) fail(err error) {
	if w.wrong == nil {
		w.wrong = err
	}
}

// checkStart checks what must hold when a worker starts.
func (w *world) checkStart(k *worker) {
	for _, other := range w.workers {
		switch {
		case other == k:
		case other.Round == k.Round && other.Rank == k.Rank:
			w.fail(fmt.Errorf("%v has started twice", k))
		case other.Round == k.Round && (other.World != k.World || other.Restarts != k.Restarts || other.Master != k.Master):
			w.fail(fmt.Errorf("%v knows of %s, and %v of %s", k, k.view(), other, other.view()))
		case other.Round >= k.Round && other.Node == k.Node && other.Round != k.Round:
			w.fail(fmt.Errorf("%v has started after %v", k, other))
		case other.Round < k.Round && other.Node == k.Node && w.alive(other):
			w.fail(fmt.Errorf("%v has started while %v is alive", k, other))
		}
	}
}

// view returns what must be the same for all workers of a round.
func (p place) view() string {
	return fmt.Sprintf("%d workers, %d restarts, master %s", p.World, p.Restarts, p.Master)
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
		if !k.gone && (node == anywhere || k.Node == node) {
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
func (k *worker) busy() bool { return k.computations > 0 && k.failure == "" && !k.stopping && !k.gone }

// order returns an error if nodes changed their order between the previous round and the newest one.
func (w *world) order() error {
	newest := w.newest()
	now, before := w.nodesOf(newest), w.nodesOf(newest-1)
	keep := func(nodes, others []int) []int {
		return slices.DeleteFunc(slices.Clone(nodes), func(n int) bool { return !slices.Contains(others, n) })
	}
	if a, b := keep(before, now), keep(now, before); !slices.Equal(a, b) {
		return fmt.Errorf("nodes in the order %v have come into the order %v in round %d", a, b, newest)
	}
	return nil
}

// state describes the newest round in one line.
func (w *world) state() string {
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
