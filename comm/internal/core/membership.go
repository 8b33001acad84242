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
	return g.agree(ctx, call.KindNewGroup, func(what *call.Call) {
		call.SetList(what, ranks)
		if tuning != "" {
			what.Detail = uint32(call.Checksum(tuning))
		}
	})
}

// AgreeOnMesh makes sure that all ranks of g pass the same shape and names. The result identifies the mesh's groups.
func (g *Group) AgreeOnMesh(ctx context.Context, shape []int, names []string) (seq uint64, err error) {
	return g.agree(ctx, call.KindNewMesh, func(what *call.Call) { call.SetMesh(what, shape, names) })
}

// agree makes sure that all ranks make the same call. set sets what they agree on. It returns the number of the call.
func (g *Group) agree(ctx context.Context, kind call.Kind, set func(what *call.Call)) (seq uint64, err error) {
	var c Collective
	c.set(ctx, g, &Args{Kind: kind}, nil)
	what := c.call.Call()
	set(&what)
	c.call = what.Pack()
	err = c.Run(ctx)
	return c.seq, err
}

// IDAfter returns an id for a group of the given members, the same on all its ranks and different from those of all
// other groups. The members have made the group in call number seq of g. Groups made in the same call have different
// names.
func (g *Group) IDAfter(seq uint64, name string, members []int) uint64 {
	return call.Checksum(g.id, seq, name, members)
}

// MembersAlone returns the members and the id of a group that the given ranks of g, of which this is one, make without an
// agreement. The id is different from those of all other groups.
func (g *Group) MembersAlone(ranks []int, name, tuning string) (members []int, id uint64, err error) {
	members, err = g.MembersOf(ranks)
	if err != nil {
		return nil, 0, err
	}
	if !slices.Contains(members, g.World.Rank) {
		return nil, 0, fmt.Errorf("rank %d is none of %v: only members call it", g.rank, ranks)
	}
	id = call.Checksum(g.id, "alone", name, members, tuning)
	if _, used := g.alone.LoadOrStore(id, true); used {
		return nil, 0, fmt.Errorf("ranks %v have made a group %q before: want another name", ranks, name)
	}
	return members, id, nil
}

// Split returns the world ranks that give the same color as this one, in the order of their keys and, where these are
// equal, of their ranks in g; none for a negative color.
func (g *Group) Split(ctx context.Context, color, key int) (members []int, seq uint64, err error) {
	type choice struct{ color, key int64 }
	var c Collective
	c.set(ctx, g, &Args{Kind: call.KindSplit}, nil)
	c.elem = 16
	choices := make([]choice, g.Size())
	c.steps = func(c *Collective) error {
		choices[g.rank] = choice{int64(color), int64(key)}
		all := g.messages.planner.AllGather(nil, g.rank, plan.EqualBlocks(g.Size(), 1), c.elem)
		return c.exchangeInPlace(all, reduce.Bytes(choices))
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
