package workergroup

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher"
)

// Begin begins a round: it sends it to the survivors, and stops the others. What it returns has to be carried out;
// then call Entered or NotEntered.
func (g *Group) Begin(spec launcher.Spec, now time.Time) (*Start, error) {
	round, err := roundOf(spec.Workers[0])
	if err != nil {
		return nil, err
	}
	for _, w := range g.workers {
		w.survives = w.survives && w.canSurvive() && w.local < len(spec.Workers)
	}
	g.stop(syscall.SIGTERM, func(w *worker) bool { return !w.survives })
	died := g.died
	g.round, g.died, g.why, g.notified = round, nil, "", false
	g.next = make([]*worker, len(spec.Workers))
	spec.Workers = slices.Clone(spec.Workers)
	start := &Start{Spec: spec}
	for local := range spec.Workers {
		its := &spec.Workers[local]
		r := env.Round{Round: round, Env: workerVariables(its.Env), Died: died}
		if local < len(g.workers) && g.workers[local].survives {
			w := g.workers[local]
			w.rank, g.next[local] = its.Rank, w
			g.gang.SetPrefix(local, w.rank, its.Prefix)
			w.enter(r, now)
			continue
		}
		w := g.newWorker(local, its.Rank, spec.Host, r)
		if g.Dir != "" {
			its.Env = setVariable(its.Env, socketVariable, w.socket.path)
		}
		g.next[local], start.workers, start.Missing = w, append(start.workers, w), append(start.Missing, local)
	}
	return start, nil
}

func (g *Group) newWorker(local, rank int, host string, r env.Round) *worker {
	g.started++
	w := &worker{group: g, local: local, host: host, rank: rank}
	w.socket = newSocket(filepath.Join(g.Dir, fmt.Sprintf("%d.%d", local, g.started)), w)
	w.current = w.withSocket(r)
	return w
}

// A Start is what has to be done outside of the agent's loop when a round begins: Listen, start the Missing, Started.
type Start struct {
	Spec    launcher.Spec
	Missing []int // local ranks of the workers that are to be started
	workers []*worker
}

// Listen opens the sockets of the workers that are to be started.
func (s *Start) Listen() error {
	for _, w := range s.workers {
		if w.group.Dir == "" {
			continue
		}
		if err := w.socket.listen(w.local); err != nil {
			return err
		}
	}
	return nil
}

// Started sets the processes of the workers, by local rank.
func (s *Start) Started(pids []int) {
	for _, w := range s.workers {
		if w.socket.listener != nil {
			go w.socket.accept(pids[w.local])
		}
	}
}

// Entered says that all workers of the round that has begun run.
func (g *Group) Entered(gang Gang, pids []int) {
	g.gang, g.workers, g.next = gang, g.next, nil
	g.stopping, g.revoked, g.reported = false, false, Event{}
	for local, w := range g.workers {
		w.pid, w.runs = pids[local], true
		if w.failed {
			g.gang.Kill(local)
		}
		if w.exit != nil {
			g.events = append(g.events, Event{Exit: w.exit})
		}
		if w.revoked != nil {
			g.events = append(g.events, Event{Revocation: w.revoked})
		}
	}
	g.checkEnd()
}

// NotEntered says that the workers that were to be started do not run. Survivors may.
func (g *Group) NotEntered() {
	for local, w := range g.next {
		if local >= len(g.workers) || w != g.workers[local] {
			w.gone = true
			w.disconnect()
			w.socket.close()
		}
	}
	g.next = nil
}
