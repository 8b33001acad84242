package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// MembersOf returns the world ranks of a new group of the given ranks of g.
func (g *Group) MembersOf(ranks []int) ([]int, error) {
	members := make([]int, 0, len(ranks))
	for _, r := range ranks {
		w := g.WorldRank(r)
		if w < 0 {
			return nil, noRank(g, r)
		}
		if slices.Contains(members, w) {
			return nil, fmt.Errorf("rank %d is named twice in %v", r, ranks)
		}
		members = append(members, w)
	}
	if len(members) == 0 {
		return nil, errors.New("no ranks given: a group has at least one")
	}
	return members, nil
}

// AgreeOnGroup makes sure that all ranks of g pass the same ranks and tuning. The result identifies the group; see
// [Group.IDAfter].
func (g *Group) AgreeOnGroup(ctx context.Context, ranks []int, tuning string) (seq uint64, err error) {
	c := new(Collective).synchronization(g, call.KindNewGroup)
	call.SetList(&c.call, ranks)
	if tuning != "" {
		c.call.Detail = uint32(call.Checksum(tuning))
	}
	return c.seqAfter(ctx)
}

// AgreeOnMesh makes sure that all ranks of g pass the same shape and names. The result identifies the mesh's groups.
func (g *Group) AgreeOnMesh(ctx context.Context, shape []int, names []string) (seq uint64, err error) {
	c := new(Collective).synchronization(g, call.KindNewMesh)
	call.SetMesh(&c.call, shape, names)
	return c.seqAfter(ctx)
}

func (c *Collective) seqAfter(ctx context.Context) (uint64, error) {
	err := c.Run(ctx)
	return c.seq, err
}

// IDAfter returns an id for a group of the given members, the same on all its ranks and different from those of all
// other groups. The members have made the group in call number seq of g. Groups made in the same call have different
// names.
func (g *Group) IDAfter(seq uint64, name string, members []int) uint64 {
	return call.Checksum(g.id, seq, name, members)
}

// Split returns the world ranks that give the same color as this one, in the order of their keys and, where these are
// equal, of their ranks in g; none for a negative color.
func (g *Group) Split(ctx context.Context, color, key int) (members []int, seq uint64, err error) {
	type choice struct{ color, key int64 }
	c := new(Collective)
	c.is(g, call.KindSplit, 0, 0)
	c.elem = 16
	choices := make([]choice, c.g.Size())
	c.body = func(c *Collective) error {
		choices[c.g.rank] = choice{int64(color), int64(key)}
		return c.exchangeInPlace(c.g.Choose.AllGather(nil, c.g.rank, plan.EqualBlocks(c.g.Size(), 1), c.elem), reduce.Bytes(choices))
	}
	if err := c.Run(ctx); err != nil || color < 0 {
		return nil, 0, err
	}
	for r, other := range choices {
		if other.color == int64(color) {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(choices[a].key, choices[b].key) })
	for i, r := range members {
		members[i] = g.Ranks[r]
	}
	return members, c.seq, nil
}
