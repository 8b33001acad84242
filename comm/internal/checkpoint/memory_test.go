package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// TestMemoryOfCommits: a state that grows, and one with a part in a world of one rank, take no more memory with each commit.
func TestMemoryOfCommits(t *testing.T) {
	for _, parts := range [][]string{nil, {"part"}} {
		wantNoErrors(t, inWorld(t, "shm", 1, func(ctx context.Context, world *comm.Group) error {
			c := rankWith(t, ID{}, 1, 1<<20, parts...)
			if err := c.Sync(ctx, world, 1, layout); err != nil {
				return err
			}
			for n := range 50 {
				for i, name := range append([]string{Shared}, parts...) {
					fill(t, c, name, n+i, 1<<20+n<<12)
				}
				if err := c.Commit(); err != nil {
					return err
				}
				for i, name := range append([]string{Shared}, parts...) {
					if err := has(c, name, n+i); err != nil {
						return err
					}
					if chain := c.chain(name); chain.before != nil {
						return fmt.Errorf("%q is kept twice, with %q", name, parts)
					}
				}
			}
			return nil
		}))
	}
}

// TestNoMemory: if there is no memory for a commit, the last one stays.
func TestNoMemory(t *testing.T) {
	c := rankWith(t, ID{1, 7}, 5, 1000)
	fill(t, c, Shared, 6, 1000)
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 59, -1} {
		if _, err := c.Take(t.Context(), Shared, []Entry{{Name: "large", Size: size}}); err == nil {
			t.Errorf("there is memory for %d bytes", size)
		}
		if err := has(c, Shared, 6); err != nil {
			t.Error(err)
		}
	}
}

// withoutSegments makes the memory of parts private, as where there is no shared memory.
func withoutSegments(t *testing.T) {
	createSegment = func(int) (*segment.Segment, error) { return nil, errors.ErrUnsupported }
	t.Cleanup(func() { createSegment = segment.Create })
}

// TestPartnersMapParts: a partner on the same machine has the memory of the rank itself, and what the rank writes for the next commit is elsewhere.
func TestPartnersMapParts(t *testing.T) {
	const size = 1 << 20
	wantNoErrors(t, inWorld(t, "tcp", 2, func(ctx context.Context, world *comm.Group) error {
		own, other := fmt.Sprint(world.Rank()), fmt.Sprint(1-world.Rank())
		c := rankWith(t, ID{}, 1, size, own)
		if err := c.Sync(ctx, world, 1, layout); err != nil {
			return err
		}
		for n := range 5 {
			fill(t, c, Shared, n, size)
			fill(t, c, own, 10+n, size)
			if err := errors.Join(c.Commit(), c.Await(ctx), comm.Barrier(ctx, world)); err != nil {
				return err
			}
			fill(t, c, own, 20+n, size) // of no commit
			if err := errors.Join(comm.Barrier(ctx, world), has(c, other, 10+n), has(c, own, 10+n)); err != nil {
				return err
			}
			if !c.chain(other).newest.memory.theirs {
				return errors.New("the partner has a copy")
			}
			if err := comm.Barrier(ctx, world); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestPlace: what is not the memory that a place is of is not mapped.
func TestPlace(t *testing.T) {
	m, err := newMemory(1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	there := m.place()
	if o := there.open(1 << 20); o == nil || !o.theirs || o.place() != (place{}) {
		t.Errorf("%+v: %+v", there, o)
	}
	for name, change := range map[string]func(*place){
		"none":    func(p *place) { *p = place{} },
		"process": func(p *place) { p.PID = 1 },
		"file":    func(p *place) { p.FD = 0 },
		"size":    func(p *place) { p.Size++ },
		"number":  func(p *place) { p.Number[1]++ },
	} {
		p := there
		if change(&p); p.open(1<<20) != nil {
			t.Errorf("%s: %+v is mapped", name, p)
		}
	}
	if there.open(1<<20+1) != nil {
		t.Error("it is mapped for more bytes than it has")
	}
}

// TestPartsOfARankThatGoesOn: what a rank commits after the end of its world reaches no memory that its partner needs. Where a partner has mapped
// memory to which a rank writes again, it says that it has no copy any more.
func TestPartsOfARankThatGoesOn(t *testing.T) {
	const size = 1 << 20
	var all [2]*Checkpoints
	wantNoErrors(t, inWorld(t, "tcp", 2, func(ctx context.Context, world *comm.Group) error {
		own := fmt.Sprint(world.Rank())
		c := rankWith(t, ID{}, 1, size, own)
		if err := c.Sync(ctx, world, 1, layout); err != nil {
			return err
		}
		all[world.Rank()] = c
		fill(t, c, Shared, 2, size)
		fill(t, c, own, 3, size)
		return errors.Join(c.Commit(), c.Await(ctx), comm.Barrier(ctx, world))
	}))
	for n := range 4 {
		fill(t, all[0], Shared, 10+n, size)
		fill(t, all[0], "0", 10+n, size)
		if err := errors.Join(all[0].Commit(), has(all[1], "0", 3)); err != nil {
			t.Fatal(err)
		}
	}
	says := func(c *Checkpoints, name string) bool {
		return slices.Contains(c.report(layout).Copies, copyReport{Name: name, ID: ID{1, 2}})
	}
	if _, err := all[1].chain("1").newest.memory.orNew(size, true); err != nil || !says(all[1], "0") || says(all[0], "1") {
		t.Errorf("%v: of memory that is as it was, rank 1 says %t, of memory that is not, rank 0 says %t", err, says(all[1], "0"), says(all[0], "1"))
	}
}
