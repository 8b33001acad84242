package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm"
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
