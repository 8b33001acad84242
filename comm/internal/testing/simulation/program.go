package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// A Program is the calls that all members make, in order.
type Program []Call

// Draw returns a program for a group of size.
func Draw(t *rapid.T, size int) Program {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Call {
		c := Call{
			Kind: rapid.SampledFrom(Kinds).Draw(t, "kind"), Count: rapid.SampledFrom([]int{0, 1, 5, 200, 4099}).Draw(t, "count"),
			InPlace: rapid.Bool().Draw(t, "in place"), Ordered: rapid.Bool().Draw(t, "ordered"), Salt: rapid.IntRange(0, 9).Draw(t, "salt"),
		}
		if c.Kind.HasRoot() {
			c.Root = rapid.IntRange(0, size-1).Draw(t, "root")
		}
		return c
	}), 1, 12).Draw(t, "calls")
}

// Run makes the calls of p on g, one after the other.
func (p Program) Run(ctx context.Context, g *core.Group) error {
	return p.RunStarting(ctx, g, func(int) bool { return false })
}

// RunStarting is Run, but it starts the calls that starts names, and waits for them after some more, or in the end.
func (p Program) RunStarting(ctx context.Context, g *core.Group, starts func(i int) bool) error {
	type started struct {
		*core.Collective
		*Part
	}
	var pending []started
	await := func() error {
		s := pending[0]
		pending = pending[1:]
		if err := s.Wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
		return s.Check()
	}
	for i, c := range p {
		part := c.Of(g.Rank(), g.Size())
		part.text = fmt.Sprintf("call %d, %s", i+1, part.text)
		if starts(i) {
			s := started{new(core.Collective), part}
			g.Start(s.Collective, &part.Args, part.Blocks)
			if pending = append(pending, s); len(pending) > 3 {
				if err := await(); err != nil {
					return err
				}
			}
			continue
		}
		if err := g.Do(ctx, &part.Args, part.Blocks); err != nil {
			return fmt.Errorf("%s: %w", part.text, err)
		}
		if err := part.Check(); err != nil {
			return err
		}
	}
	for len(pending) > 0 {
		if err := await(); err != nil {
			return err
		}
	}
	return nil
}

// Names reports whether err says that rank is at fault.
func Names(err error, rank int) bool {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	return ok && (f.Rank == rank || slices.ContainsFunc(f.Calls, func(c diagnosis.RankCall) bool { return c.Rank == rank }))
}

// Deviations are the calls that a member of three may make instead of c. No two of them, and c, are alike to others.
func (c Call) Deviations() []Call {
	kind, count, root, order, lengths := c, c, c, c, c
	kind.Kind, kind.Root = Kinds[(slices.Index(Kinds, c.Kind)+1)%len(Kinds)], 0
	count.Count += 3
	root.Root = (c.Root + 1) % 3
	order.Ordered = !c.Ordered
	lengths.Salt++
	all := []Call{kind}
	if hasCount := c.Of(0, 1).Args.Type != 0; hasCount {
		all = append(all, count)
	}
	if c.Kind.HasRoot() {
		all = append(all, root)
	}
	if c.Reduces() {
		all = append(all, order)
	}
	if c.Kind.HasLengths() {
		all = append(all, lengths)
	}
	return all
}
