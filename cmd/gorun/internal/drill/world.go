package drill

import (
	"cmp"
	"fmt"
	"slices"
)

// A world is the workers of a job, as they have reported.
type world struct {
	nproc   int
	alive   func(*worker) bool // whether its process has not ended
	workers []*worker          // all that there ever were, in the order of their first messages
}

// add adds a worker, which is in a round now.
func (w *world) add(k *worker) {
	w.workers = append(w.workers, k)
	if k.previous != nil {
		k.state, k.previous.next = k.previous.state, k
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

// ranksOf returns the ranks of a node in a round.
func (w *world) ranksOf(round, node int) (ranks []int) {
	for _, k := range w.in(round) {
		if k.Node == node {
			ranks = append(ranks, k.Rank)
		}
	}
	return ranks
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

// computations are how often each worker has computed.
type computations map[*worker]int

func (w *world) computations() computations {
	counts := make(computations)
	for _, k := range w.workers {
		counts[k] = k.computations
	}
	return counts
}

// haveComputedSince reports whether all workers of the newest round have computed since then.
func (w *world) haveComputedSince(then computations) bool {
	return !slices.ContainsFunc(w.in(w.newest()), func(k *worker) bool { return k.computations <= then[k] })
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
