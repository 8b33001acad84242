package comm

import (
	"context"
	"fmt"
	"slices"
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
	members, err := parent.core.MembersOf(ranks)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return nil, parent.core.Refused(&ArgumentError{Op: "NewGroup", Err: err})
	}
	seq, err := parent.core.AgreeOnGroup(ctx, ranks, cfg.Tuning.String())
	if err != nil || !slices.Contains(members, parent.world.Rank) {
		return nil, public(err)
	}
	return parent.part("NewGroup", seq, "", members, cfg)
}

// Split cuts parent into groups: the ranks that give the same color make one, in the order of their keys and, where these
// are equal, of their ranks in parent. Every rank of parent calls it; one that gives a negative color gets nil, nil. The
// groups have parent's timeout and codec.
func Split(ctx context.Context, parent *Group, color, key int) (*Group, error) {
	if err := someGroup("Split", parent); err != nil {
		return nil, err
	}
	members, seq, err := parent.core.Split(ctx, color, key)
	if err != nil || members == nil {
		return nil, public(err)
	}
	return parent.part("Split", seq, "", members, parent.settings())
}

// part makes the group of members that g's call of op, number seq, has agreed on.
func (g *Group) part(op string, seq uint64, name string, members []int, cfg config) (*Group, error) {
	part, err := newGroup(g.world, g.core.IDAfter(seq, name, members), members, cfg)
	if err != nil {
		return nil, fmt.Errorf("comm: %s: %w", op, err)
	}
	return part, nil
}
