package etcd

import (
	"cmp"
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

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
		for key, s := range doc.Assignments {
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
