package etcd

import (
	"cmp"
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// namedLimit is how many of the peers that a failed worker names are called.
const namedLimit = 16

// confirm calls the peers that a worker of this node could not reach in a round. Until that is done no Join of this node waits for
// the next one, which depends on it.
func (l *loop) confirm(round int, named []rendezvous.Peer) {
	if !l.outage.IsZero() {
		return
	}
	named = named[:min(len(named), namedLimit)]
	l.confirming++
	l.others.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, callTimeout)
		defer cancel()
		owners, err := l.etcd.owners(ctx, round, named)
		if err != nil {
			l.config.Log.Debug("who has the ranks that a worker could not reach", "error", err)
		}
		failed := make(chan rendezvous.Peer, len(named))
		var calls int
		for _, n := range named {
			if owner, ok := owners[n.Rank]; ok && owner.Key != l.etcd.key {
				calls++
				go func() {
					if !isUnreachable(l.dial(ctx, n.Addr)) {
						n.Addr = ""
					}
					failed <- n
				}()
			}
		}
		var lost []rendezvous.Peer
		for range calls {
			if n := <-failed; n.Addr != "" {
				lost = append(lost, n)
			}
		}
		l.post(func() {
			l.confirming--
			if !l.outage.IsZero() {
				return
			}
			for _, n := range lost {
				l.callWorker(owners[n.Rank], n.Addr)
			}
		})
	})
}

// owners are the nodes that have the ranks named in a round.
func (w *writer) owners(ctx context.Context, round int, named []rendezvous.Peer) (map[int]peerDoc, error) {
	answer, err := w.client.Get(ctx, w.keys.roundOf(round), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	type first struct {
		rank  int
		owner peerDoc
	}
	var all []first
	for _, kv := range answer.Kvs {
		doc, err := decode[roundDoc](kv)
		if err != nil {
			return nil, err
		}
		for key, s := range doc.Seats {
			all = append(all, first{s.Place.FirstRank, peerDoc{Key: key, Host: s.Host}})
		}
	}
	slices.SortFunc(all, func(a, b first) int { return cmp.Compare(a.rank, b.rank) })
	owners := make(map[int]peerDoc)
	for _, n := range named {
		after, _ := slices.BinarySearchFunc(all, n.Rank+1, func(f first, rank int) int { return cmp.Compare(f.rank, rank) })
		if after > 0 && n.Rank >= 0 {
			owners[n.Rank] = all[after-1].owner
		}
	}
	return owners, nil
}
