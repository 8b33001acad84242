package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// NewGroup makes a group of the given ranks of parent, in the given order: ranks[i] of parent becomes rank i.
// Every rank of parent calls it, with the same ranks; it returns nil, nil where the rank is not among them.
// Of the options [WithTimeout], [WithCodec], [WithObjectLimit] and [WithTuning] matter; what they do not set the group has from parent.
func NewGroup(ctx context.Context, parent *Group, ranks []int, opts ...Option) (*Group, error) {
	if err := someGroup("NewGroup", parent); err != nil {
		return nil, err
	}
	cfg := parent.settings()
	for _, o := range opts {
		o(&cfg)
	}
	members, err := parent.part(ranks)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return nil, parent.refused(&ArgumentError{Op: "NewGroup", Err: err})
	}
	// The barrier makes sure that all mean the same ranks, and its number gives the group a name that all know.
	c := meeting(new(collective), parent, callNewGroup)
	give(&c.call, ranks)
	if rules := cfg.rules.String(); rules != "" {
		c.call.Detail = uint32(checksum(rules))
	}
	if err := c.run(ctx); err != nil || !slices.Contains(members, parent.w.rank) {
		return nil, err
	}
	return c.newGroup("", members, cfg)
}

// part are the world ranks of ranks, which are to be a group.
func (g *Group) part(ranks []int) ([]int, error) {
	members := make([]int, 0, len(ranks))
	for _, r := range ranks {
		w := g.WorldRank(r)
		if w < 0 {
			return nil, fmt.Errorf("no rank %d in a group of %d", r, g.Size())
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

// Split cuts parent into groups: the ranks that give the same color make one, in the order of their keys and, where these
// are equal, of their ranks in parent. Every rank of parent calls it; one that gives a negative color gets nil, nil. The
// groups have parent's timeout and codec.
func Split(ctx context.Context, parent *Group, color, key int) (*Group, error) {
	type place struct{ color, key int64 }
	c := new(collective)
	c.is(parent, callSplit, 0, 0)
	c.elem = 16
	places := make([]place, c.g.Size())
	c.begin = func(c *collective) task {
		places[c.g.rank] = place{int64(color), int64(key)}
		return inPlace(c.g.choose.AllGather(c.g.rank, c.g.Size(), 1, c.elem), reduce.Bytes(places))
	}
	if err := c.run(ctx); err != nil || color < 0 {
		return nil, err
	}
	var ranks []int
	for r, p := range places {
		if p.color == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(places[a].key, places[b].key) })
	for i, r := range ranks {
		ranks[i] = parent.ranks[r]
	}
	return c.newGroup("", ranks, parent.settings())
}

// newGroup makes a group of the given world ranks after c, which has ended. c's number, name and members tell it from every
// other group, on all its ranks alike.
func (c *collective) newGroup(name string, members []int, cfg config) (*Group, error) {
	g, err := newGroup(c.g.w, checksum(c.g.id, c.seq, name, members), members, cfg)
	if err != nil {
		return nil, fmt.Errorf("comm: %v: %w", callKind(c.call.Op), err)
	}
	return g, nil
}

// checksum is a 64-bit FNV-1a hash of values, the same on every rank.
func checksum(values ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", values)
	return h.Sum64()
}
