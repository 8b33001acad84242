package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// Drain records that this node is about to leave a round. Of several nodes that want to leave at the same time, no more may than the others
// can go on without.
func (r *Rendezvous) Drain(ctx context.Context, round *rendezvous.Round) error {
	least, _ := r.Limits()
	return r.driver.change(ctx, func(ctx context.Context, x *executor) error { return x.drain(ctx, round, least) })
}

// drain writes who leaves the round, unless fewer nodes than least would be left, or the job is over. It also counts those that leave for
// another reason, and those that are gone.
func (w *writer) drain(ctx context.Context, round *rendezvous.Round, least int) error {
	add := func(was store.KV, found []store.Found) (any, error) {
		doc := drainDoc{Round: round.ID}
		if was.Written > 0 {
			before, err := decode[drainDoc](was)
			if err != nil {
				return nil, err
			}
			if before.Round == round.ID {
				doc = before
			}
		}
		if slices.Contains(doc.Nodes, round.Self) {
			return nil, nil
		}
		gone := goneRanks(w.keys, found[0].KVs, found[1].KVs)
		for _, rank := range doc.Nodes {
			gone[rank] = true
		}
		delete(gone, round.Self)
		if left := round.Size - len(gone); left <= least {
			return nil, fmt.Errorf("%d of the %d nodes of round %d are leaving or gone already, and the job needs at least %d: wait for the next round, or take this node out with --force",
				len(gone), round.Size, round.ID, least)
		}
		doc.Nodes = append(doc.Nodes, round.Self)
		return doc, nil
	}
	return w.updateForJob(ctx, w.keys.drain(), add, below(w.keys.nodes()), below(w.keys.roundOf(round.ID)))
}

// goneRanks returns the node ranks of a round's members that are gone, or say that they are leaving. nodes and rounds are the documents of the
// job's nodes and of the round; of those that cannot be read, it knows nothing.
func goneRanks(k keys, nodes, rounds []store.KV) map[int]bool {
	stays := make(map[string]bool)
	for _, kv := range nodes {
		doc, err := decode[nodeDoc](kv)
		stays[strings.TrimPrefix(kv.Key, k.nodes())] = err != nil || !doc.Leaving
	}
	gone := make(map[int]bool)
	for _, kv := range rounds {
		if doc, err := decode[roundDoc](kv); err == nil {
			for key, a := range doc.Assignments {
				if !stays[key] {
					gone[a.Rank] = true
				}
			}
		}
	}
	return gone
}
