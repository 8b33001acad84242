package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/objects"
)

// A World is an open world of a [Process].
type World struct {
	*core.World
	All     *core.Group    // of all ranks
	Objects objects.Format // how objects travel among them

	process     *Process
	leave       []func()          // undo what Join has done besides
	answers     bool              // the agent's questions are about w
	round       *membership.Round // nil: this process cannot rejoin after this world
	agentSpeaks sync.Once         // for withDeath, which waits once for what the agent says

	mu     sync.Mutex
	groups []*core.Group // those that are open
}

// OfRound reports whether this process can rejoin after w.
func (w *World) OfRound() bool { return w.round != nil }

// Groups returns the groups of w that are open.
func (w *World) Groups() []*core.Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.groups)
}

// NewGroup makes the group of the given world ranks. id is the same on all of them.
func (w *World) NewGroup(id uint64, ranks []int, timeout time.Duration, rules choice.Tuning) (*core.Group, error) {
	g, err := core.NewGroup(w.World, id, ranks, timeout, rules)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	g.OnFailure = func(err error) { w.saveFlight(g, err, &once) }
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = append(w.groups, g)
	return g, nil
}

// remove removes g, and with the group of all ranks all others, and returns what it has removed.
func (w *World) remove(g *core.Group) (removed []*core.Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = slices.DeleteFunc(w.groups, func(other *core.Group) bool {
		if other != g && g != w.All {
			return false
		}
		removed = append(removed, other)
		return true
	})
	return removed
}

// Close leaves g, and with the group of all ranks the world. differ says for each group in which members have made
// other calls than this rank how they differ.
func (w *World) Close(g *core.Group) (differ []error, err error) {
	whole := g == w.All
	closed := w.remove(g)
	switch {
	case whole && w.CheckBuffers:
		w.Heap.Detach(&w.process.unfreed)
	case whole && w.round != nil:
		w.Heap.Detach(&w.process.rest)
	}
	var abandoned []string
	for _, other := range closed {
		if err := other.Compare(); err != nil {
			differ = append(differ, err)
		}
		abandoned = append(abandoned, other.Unattended()...)
	}
	for _, other := range closed {
		other.Comm.AwaitNotified(core.CloseNotifyTimeout)
	}
	g.Comm.Close()
	if whole {
		err = w.end()
	}
	for _, other := range closed {
		abandoned = append(abandoned, other.Comm.Abandoned()...)
		other.Release()
	}
	if len(abandoned) > 0 {
		err = errors.Join(err, &AbandonedError{abandoned})
	}
	return differ, err
}

// end ends what comm has started for w.
func (w *World) end() error {
	err := errors.Join(w.Endpoint.Close(), w.Acceptor.Close())
	p := w.process
	p.mu.Lock()
	p.worlds = slices.DeleteFunc(p.worlds, func(other *World) bool { return other == w })
	p.mu.Unlock()
	for _, leave := range w.leave {
		leave()
	}
	return err
}

// An AbandonedError says that a group has been closed before operations had ended that nobody has waited for.
type AbandonedError struct{ names []string }

func (e *AbandonedError) Error() string {
	const most = 8
	names, more := e.names, ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("comm: Close: nobody has waited for %s%s, which had not ended: call Work.Wait before Close", strings.Join(names, ", "), more)
}
