package drill

import (
	"cmp"
	"fmt"
	"slices"
)

// checkStart returns an error if a worker has started, or come into a round, where it must not.
func (o *observer) checkStart(k *worker) error {
	for _, other := range o.workers {
		switch {
		case other == k:
		case other.Round == k.Round && other.Rank == k.Rank:
			return fmt.Errorf("%v has started twice", k)
		case k.Master == "" || other.Master == "": // they cannot be asked
		case other.Round == k.Round && (other.World != k.World || other.Restarts != k.Restarts || other.Master != k.Master):
			return fmt.Errorf("%v knows of %s, and %v of %s", k, k.view(), other, other.view())
		case other.Round >= k.Round && other.Node == k.Node && other.Round != k.Round:
			return fmt.Errorf("%v has started after %v", k, other)
		case other.Round < k.Round && other.Node == k.Node && !o.replace && o.alive(other):
			return fmt.Errorf("%v has started while %v is alive", k, other)
		}
	}
	return nil
}

// view returns what must be the same for all workers of a round.
func (p place) view() string {
	return fmt.Sprintf("%d workers, %d restarts, master %s", p.World, p.Restarts, p.Master)
}

// order returns an error if nodes changed their order between the previous round and the newest one.
func (w *world) order() error {
	newest := w.newest()
	now, before := w.nodesOf(newest), w.nodesOf(newest-1)
	common := func(nodes, others []int) []int {
		return slices.DeleteFunc(slices.Clone(nodes), func(n int) bool { return !slices.Contains(others, n) })
	}
	if a, b := common(before, now), common(now, before); !slices.Equal(a, b) {
		return fmt.Errorf("nodes in the order %v have come into the order %v in round %d", a, b, newest)
	}
	return nil
}

// checkRound checks what must hold when all workers of the newest round have computed together.
func (w *world) checkRound() error {
	return cmp.Or(w.order(), w.checkOld(), w.checkState())
}

// checkOld returns an error if a node of the newest round has workers of another round.
func (w *world) checkOld() error {
	newest := w.newest()
	nodes := w.nodesOf(newest)
	for _, k := range w.live(anywhere) {
		if k.Round != newest && slices.Contains(nodes, k.Node) && w.alive(k) {
			return fmt.Errorf("%v is alive in round %d", k, newest)
		}
	}
	return nil
}

// checkState returns an error if the newest round began in a state before that of one of its workers.
func (w *world) checkState() error {
	list := w.in(w.newest())
	for _, survivor := range list {
		for _, k := range list {
			if before := survivor.previous; before != nil && k.first < before.state {
				return fmt.Errorf("%v has begun in state %d, where %v was in state %d", k, k.first, before, before.state)
			}
		}
	}
	return nil
}

// checkSurvivors returns an error if a worker that the fault did not hit has not outlived its round, has another rank although the nodes are
// the same, or has not learned the cause. If all survivors keep their ranks, the new workers have the ranks of the dead.
func (o *observer) checkSurvivors() error {
	newest := o.newest()
	nodes := o.nodesOf(newest)
	same := slices.Equal(o.nodesOf(o.fault.before), nodes)
	for _, k := range o.in(o.fault.before) {
		now := k.last()
		switch {
		case o.fault.hits(k), !slices.Contains(nodes, k.Node):
		case now.Round != newest:
			return fmt.Errorf("%v, which the fault did not hit, has not outlived its round", k)
		case same && now.Rank != k.Rank:
			return fmt.Errorf("%v has become %v, although the nodes are the same", k, now)
		default:
			if err := o.checkCause(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCause returns an error if a survivor has not learned whom the fault has ended, and how.
func (o *observer) checkCause(k *worker) error {
	switch {
	case o.fault.exitCode == 0:
		return nil
	case k.death == nil:
		return fmt.Errorf("%v has not learned who died of what: %s", k, k.failure)
	case k.death.ExitCode != o.fault.exitCode:
		return fmt.Errorf("%v has learned of exit code %d, want %d", k, k.death.ExitCode, o.fault.exitCode)
	case k.death.OutOfMemory != o.fault.outOfMemory && (!k.death.OutOfMemory || !o.memoryWasShort()):
		return fmt.Errorf("%v has learned that memory has run out: %t, want %t", k, k.death.OutOfMemory, o.fault.outOfMemory)
	}
	if !slices.ContainsFunc(o.in(o.fault.before), func(v *worker) bool { return v.Rank == k.death.Rank && o.fault.hits(v) }) {
		return fmt.Errorf("%v has learned that rank %d died, which the fault did not hit", k, k.death.Rank)
	}
	return nil
}
