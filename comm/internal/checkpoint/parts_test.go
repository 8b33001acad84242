package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm"
)

// TestParts: a rank that is started again gets its part of a commit from its partner, and nobody goes on with parts of two commits.
func TestParts(t *testing.T) {
	const size, part = 4, 1 << 20
	name := func(rank int) string { return fmt.Sprint("part ", rank) }
	onTransports(t, func(t *testing.T, transport comm.Transport) {
		if transport == "tcp" {
			withoutSegments(t)
		}
		all := make([]*Checkpoints, size)
		round, number := uint64(0), uint64(0)
		world := func(work func(rank int, c *Checkpoints) error) {
			t.Helper()
			round++
			for r := range all {
				if all[r] == nil {
					all[r] = rankWith(t, ID{}, 100+r, part, name(r))
				}
			}
			wantNoErrors(t, inWorld(t, transport, size, func(ctx context.Context, world *comm.Group) error {
				c := all[world.Rank()]
				if !c.begun {
					fill(t, c, Shared, 100, part)
					fill(t, c, name(world.Rank()), 100+10*world.Rank(), part)
				}
				if err := c.Sync(ctx, world, round, layout); err != nil {
					return err
				}
				if err := work(world.Rank(), c); err != nil {
					return err
				}
				if err := c.Await(t.Context()); err != nil {
					return err
				}
				return comm.Barrier(ctx, world)
			}))
		}
		commit := func(rank int, c *Checkpoints, n int) error {
			if err := c.Await(t.Context()); err != nil {
				return err
			}
			fill(t, c, Shared, n, part)
			fill(t, c, name(rank), n+10*rank, part+n) // its length may change
			return c.Commit()
		}
		check := func(rank int, c *Checkpoints, n int) error {
			if c.Number() != number {
				return fmt.Errorf("it has commit %d, want %d", c.Number(), number)
			}
			return errors.Join(has(c, Shared, n), has(c, name(rank), n+10*rank))
		}
		number = 1
		world(func(rank int, c *Checkpoints) error { return check(rank, c, 100) })
		world(func(rank int, c *Checkpoints) error {
			for n := range 3 {
				if err := commit(rank, c, 200+n); err != nil {
					return err
				}
			}
			return nil
		})
		number = 4
		for lost := range size { // one rank after the other is started again
			all[lost] = nil
			world(func(rank int, c *Checkpoints) error { return check(rank, c, 202) })
		}
		all[0], all[2] = nil, nil // and two that are not partners of each other
		world(func(rank int, c *Checkpoints) error { return check(rank, c, 202) })
		// Rank 1 ends after the others have made a commit, and it has not: they go back to the one before.
		for r := range all {
			if r != 1 {
				if err := commit(r, withoutMoves(all[r]), 300); err != nil {
					t.Fatal(err)
				}
			}
		}
		all[1] = nil
		world(func(rank int, c *Checkpoints) error { return check(rank, c, 202) })
	})
}

// withoutMoves ends the world of c: what it commits now reaches nobody.
func withoutMoves(c *Checkpoints) *Checkpoints {
	c.moves, c.group = nil, nil
	return c
}

// TestPartsThatAreLost: all ranks say which part nobody has.
func TestPartsThatAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		parts [3]string // of ranks that have a commit; a rank without one is new
		owned [3]string
		had   int
		want  string
	}{
		"both copies": {[3]string{"a", "", ""}, [3]string{"a", "b", "c"}, 3,
			`nobody has part "b" of rank 1: the rank that had it and the one with its copy are gone, or there never was one`},
		"claimed":  {[3]string{"", "", ""}, [3]string{"a", "b", "a"}, 0, `part "a" is in the States of ranks 0 and 2: a part belongs to one rank`},
		"nobody's": {[3]string{"a", "b", "c"}, [3]string{"a", "b", ""}, 3, `part "c" is in the State of no rank any more: rank 2 has a copy of it`},
		// Rank 3 has gone with a node before its part was sent, and the job is smaller.
		"sent to nobody": {[3]string{"a", "b", "c"}, [3]string{"a", "b", "c"}, 4,
			`all ranks had 4 parts, and have 3: a job with parts keeps its number of ranks`},
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range inWorld(t, "shm", 3, func(ctx context.Context, world *comm.Group) error {
				var owned []string
				if own := c.owned[world.Rank()]; own != "" {
					owned = append(owned, own)
				}
				own := rankWith(t, ID{}, 1, 100, owned...)
				if had := c.parts[world.Rank()]; had != "" {
					own = rankWith(t, ID{8, 5}, 1, 100, had)
					own.parts, own.had = owned, c.had
				}
				return own.Sync(ctx, world, 9, layout)
			}) {
				if err == nil || err.Error() != "comm: elastic.Run: "+c.want {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// TestCommitsAtDifferentPoints: a rank that has committed more often than its partner is an error, and no mixture.
func TestCommitsAtDifferentPoints(t *testing.T) {
	for _, test := range []struct {
		more, other int // of rank 1: commits, and values in what is shared
		want        string
	}{
		{1, 0, "rank 1 makes commit 3, and rank 0 commit 2: all ranks commit at the same points of the program"},
		{0, 1, "commit 2 has other values on rank 1 than on rank 0: all ranks have to commit the same, at the same point of the program"},
	} {
		errs := inWorld(t, "shm", 2, func(ctx context.Context, world *comm.Group) error {
			const size = 4 << 20 // it is not sent before the receiver wants it
			c := rankWith(t, ID{}, 1, size, fmt.Sprint(world.Rank()))
			if err := c.Sync(ctx, world, 1, layout); err != nil {
				return err
			}
			c.last.Number += uint64(test.more * world.Rank())
			fill(t, c, Shared, 2+test.other*world.Rank(), size)
			fill(t, c, fmt.Sprint(world.Rank()), 2, size)
			return errors.Join(c.Commit(), c.Await(t.Context()))
		})
		if err := fmt.Sprint(errs[0]); !strings.Contains(err, test.want) {
			t.Error(err)
		}
		if errs[1] == nil {
			t.Error("rank 1 has no error")
		}
	}
}

// TestCommitWithoutWorld: after the end of a world, commits are each rank's own.
func TestCommitWithoutWorld(t *testing.T) {
	var all [2]*Checkpoints
	wantNoErrors(t, inWorld(t, "shm", 2, func(ctx context.Context, world *comm.Group) error {
		c := rankWith(t, ID{}, 1, 100, fmt.Sprint(world.Rank()))
		all[world.Rank()] = c
		if err := c.Sync(ctx, world, 1, layout); err != nil {
			return err
		}
		return comm.Barrier(ctx, world)
	}))
	for r, c := range all {
		for n := range 3 {
			fill(t, c, Shared, n, 100) // which fails if the commit before has sent something
			fill(t, c, fmt.Sprint(r), n+1, 100)
			if err := errors.Join(c.Commit(), has(c, Shared, n), has(c, fmt.Sprint(r), n+1)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestManyParts: however many parts a rank has, it waits for two ranks: its partner, and the one whose partner it is.
func TestManyParts(t *testing.T) {
	const parts = 300
	wantNoErrors(t, inWorld(t, "shm", 3, func(ctx context.Context, world *comm.Group) error {
		var names []string
		for i := range parts {
			names = append(names, fmt.Sprint(world.Rank(), "-", i))
		}
		c := rankWith(t, ID{}, 1, 100, names...)
		if err := c.Sync(ctx, world, 1, layout); err != nil {
			return err
		}
		fill(t, c, Shared, 1, 100)
		for i, name := range names {
			fill(t, c, name, i, 100)
		}
		if err := errors.Join(c.Commit(), c.Await(ctx), comm.Barrier(ctx, world)); err != nil {
			return err
		}
		for i := range parts {
			if err := has(c, fmt.Sprint((world.Rank()+2)%3, "-", i), i); err != nil {
				return err
			}
		}
		if n := len(c.newExchange(ctx, c.moves, c.last, true).tags()); n != 2 {
			return fmt.Errorf("it sends to and receives from %d ranks", n)
		}
		return nil
	}))
}
