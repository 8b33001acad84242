package etcd

import (
	"cmp"
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// namedLimit is how many of the peers that a failed worker names its agent calls.
const namedLimit = 16

// confirm calls the peers that a worker of this node could not reach in a round. Until that is done this node does not enrol for
// the next round, whose members depend on it.
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
		called := make(chan rendezvous.Peer, len(named)) // without an address: it answers
		var calls int
		for _, n := range named {
			if owner, ok := owners[n.Rank]; ok && owner.Key != l.etcd.key {
				calls++
				go func() {
					if !isUnreachable(l.dial(ctx, n.Addr)) {
						n.Addr = ""
					}
					called <- n
				}()
			}
		}
		var unreached []rendezvous.Peer
		for range calls {
			if n := <-called; n.Addr != "" {
				unreached = append(unreached, n)
			}
		}
		l.post(func() {
			l.confirming--
			if !l.outage.IsZero() {
				return
			}
			for _, n := range unreached {
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
	type member struct {
		firstRank int
		peerDoc
	}
	var all []member
	for _, kv := range answer.Kvs {
		doc, err := decode[roundDoc](kv)
		if err != nil {
			return nil, err
		}
		for key, s := range doc.Seats {
			all = append(all, member{s.Place.FirstRank, peerDoc{Key: key, Host: s.Host}})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.firstRank, b.firstRank) })
	owners := make(map[int]peerDoc)
	for _, n := range named {
		after, _ := slices.BinarySearchFunc(all, n.Rank+1, func(m member, rank int) int { return cmp.Compare(m.firstRank, rank) })
		if after > 0 && n.Rank >= 0 {
			owners[n.Rank] = all[after-1].peerDoc
		}
	}
	return owners, nil
}
