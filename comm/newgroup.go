package comm

import (
	"context"
	"fmt"
	"slices"
)

// NewGroup makes a group of some ranks of parent: ranks[i] of parent becomes rank i. Every rank of parent calls it with the same ranks. It
// returns nil, nil on ranks that are not members. The options [WithTimeout], [WithCodec], [WithObjectLimit] and [WithTuning] have an effect;
// the group inherits from parent what they do not set.
func NewGroup(ctx context.Context, parent *Group, ranks []int, opts ...Option) (*Group, error) {
	if err := checkGroup("NewGroup", parent); err != nil {
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

// Split divides parent into groups. The ranks that pass the same color form a group, in the order of their keys. Ranks with equal keys are
// in the order of their ranks in parent. Every rank of parent calls it. A rank that passes a negative color gets nil, nil. The groups
// inherit parent's timeout, codec, object limit and tuning.
func Split(ctx context.Context, parent *Group, color, key int) (*Group, error) {
	if err := checkGroup("Split", parent); err != nil {
		return nil, err
	}
	members, seq, err := parent.core.Split(ctx, color, key)
	if err != nil || members == nil {
		return nil, public(err)
	}
	return parent.part("Split", seq, "", members, parent.settings())
}

// part makes the group of the members on which g's call of op, number seq, has agreed.
func (g *Group) part(op string, seq uint64, name string, members []int, cfg config) (*Group, error) {
	part, err := newGroup(g.world, g.core.IDAfter(seq, name, members), members, cfg)
	if err != nil {
		return nil, fmt.Errorf("comm: %s: %w", op, err)
	}
	return part, nil
}
