package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("GROUP_RANK")
	runtime.GOMAXPROCS(2 * maxSources) // also where there are fewer processors, a commit is to come from several ranks
	goleak.VerifyTestMain(testkit.OwnSettings(m))
}

// inWorld runs program as each rank of a world, and returns their errors.
func inWorld(t testing.TB, transport comm.Transport, size int, program func(ctx context.Context, world *comm.Group) error) []error {
	var (
		store = comm.NewMemStore()
		errs  = make([]error, size)
		ranks sync.WaitGroup
		log   testkit.Log
	)
	for r := range size {
		ranks.Go(func() {
			world, err := comm.Init(t.Context(), comm.WithStore(store), comm.WithRank(r, size), comm.WithTransport(transport),
				comm.WithTimeout(time.Minute), comm.WithLogger(log.Logger()))
			if err == nil {
				err = errors.Join(program(t.Context(), world), world.Close())
			}
			errs[r] = err
		})
	}
	ranks.Wait()
	return errs
}

func wantNoErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// onTransports runs test as a subtest for each.
func onTransports(t *testing.T, test func(t *testing.T, transport comm.Transport)) {
	for _, transport := range []comm.Transport{"tcp", "shm"} {
		t.Run(fmt.Sprint(transport), func(t *testing.T) { test(t, transport) })
	}
}

// pattern is what memory is filled with, from some offset on: a copy is quick under the race detector, too.
var pattern = sync.OnceValue(func() []byte {
	b := make([]byte, 16<<20+1000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
})

// fill takes contents that n tells: a value, a short slice, a long one and an empty one.
func fill(t testing.TB, c *Checkpoints, name string, n, size int) {
	entries, err := c.Take(t.Context(), name, []Entry{
		{Name: "empty"}, {Name: "large", Size: size}, {Name: "small", Size: 3}, {Name: "value", Node: []byte(fmt.Sprint("value ", n))},
	})
	if err != nil {
		t.Fatal(err)
	}
	copy(entries[1].Bytes, pattern()[n:])
	copy(entries[2].Bytes, pattern()[n+1:])
}

// has reports what is not as fill(n) leaves it.
func has(c *Checkpoints, name string, n int) error {
	entries := c.Entries(name)
	if len(entries) != 4 {
		return fmt.Errorf("%q has %d entries", name, len(entries))
	}
	if got, want := string(entries[3].Node), fmt.Sprint("value ", n); got != want {
		return fmt.Errorf("the value of %q is %q, want %q", name, got, want)
	}
	if !bytes.Equal(entries[1].Bytes, pattern()[n:][:entries[1].Size]) || !bytes.Equal(entries[2].Bytes, pattern()[n+1:][:3]) {
		return fmt.Errorf("%q does not have the bytes of %d", name, n)
	}
	return nil
}

// rankWith returns what a rank has: a commit, all of which is filled with n, or only its variables if id is zero.
func rankWith(t testing.TB, id ID, n, size int, parts ...string) *Checkpoints {
	c, err := New(parts...)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range append([]string{Shared}, parts...) {
		fill(t, c, name, n+10*i, size)
	}
	if id != (ID{}) {
		c.begun, c.round, c.last = true, id.Round, ID{id.Round, id.Number - 1}
		c.Commit()
	}
	return c
}

var layout = Layout{Run: 1, Fields: []Field{{"empty", "int8 × 0", true}, {"value", AnyValue, false}}}

// TestSync: all ranks come to the newest commit.
func TestSync(t *testing.T) {
	type rank struct {
		id       ID
		contents int
	}
	for name, c := range map[string]struct {
		ranks []rank
		want  int
		id    ID
	}{
		"the first world":             {[]rank{{contents: 4}, {contents: 5}, {contents: 6}}, 4, ID{9, 1}},
		"a newcomer":                  {[]rank{{ID{8, 3}, 7}, {ID{8, 3}, 7}, {}}, 7, ID{8, 3}},
		"a newcomer that is rank 0":   {[]rank{{}, {ID{8, 3}, 7}, {ID{8, 3}, 7}}, 7, ID{8, 3}},
		"one survivor":                {[]rank{{}, {ID{8, 3}, 7}, {}, {}}, 7, ID{8, 3}},
		"one ahead":                   {[]rank{{ID{8, 3}, 6}, {ID{8, 4}, 7}, {ID{8, 3}, 6}, {}}, 7, ID{8, 4}},
		"one behind":                  {[]rank{{ID{8, 4}, 7}, {ID{8, 4}, 7}, {ID{8, 3}, 6}}, 7, ID{8, 4}},
		"more sources than there are": {[]rank{{ID{8, 1}, 7}, {ID{8, 1}, 7}, {}, {ID{8, 1}, 7}, {ID{8, 1}, 7}, {ID{8, 1}, 7}, {}}, 7, ID{8, 1}},
		"back from an older round":    {[]rank{{ID{7, 9}, 6}, {ID{8, 3}, 7}, {ID{8, 3}, 7}}, 7, ID{8, 3}},
		"nobody is new":               {[]rank{{ID{8, 3}, 7}, {ID{8, 3}, 7}}, 7, ID{8, 3}},
		"alone":                       {[]rank{{contents: 3}}, 3, ID{9, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, func(t *testing.T, transport comm.Transport) {
				size := len(c.ranks) * minShare
				if testkit.Race { // two sources, of as little as they may have
					size = 2 * minShare
				}
				all := make([]*Checkpoints, len(c.ranks))
				for r, own := range c.ranks {
					all[r] = rankWith(t, own.id, own.contents, size)
				}
				wantNoErrors(t, inWorld(t, transport, len(c.ranks), func(ctx context.Context, world *comm.Group) error {
					own := all[world.Rank()]
					for _, round := range []uint64{9, 10} { // the copies are the same on all ranks, which a second world compares
						if err := own.Sync(ctx, world, round, layout); err != nil {
							return fmt.Errorf("round %d: %w", round, err)
						}
						if own.last != c.id || !own.begun {
							return fmt.Errorf("round %d: it has commit %v", round, own.last)
						}
						if err := has(own, Shared, c.want); err != nil {
							return fmt.Errorf("round %d: %w", round, err)
						}
					}
					return nil
				}))
			})
		})
	}
}

// TestCommitsThatDiffer: if two ranks have different contents for the same commit, every rank says so, and for which variable. A rank with an
// older commit keeps it.
func TestCommitsThatDiffer(t *testing.T) {
	for name, change := range map[string]func(entries []Entry){
		"value": func(entries []Entry) { entries[3].Node = []byte("another value") },
		"small": func(entries []Entry) { entries[2].Bytes[2]++ },
		"large": func(entries []Entry) { entries[1].Bytes[entries[1].Size-1]++ },
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range inWorld(t, "shm", 4, func(ctx context.Context, world *comm.Group) error {
				if world.Rank() == 1 {
					c := rankWith(t, ID{8, 4}, 6, 1000)
					err := c.Sync(ctx, world, 9, layout)
					if kept := has(c, Shared, 6); kept != nil || c.last != (ID{8, 4}) {
						return fmt.Errorf("commit %v: %w", c.last, kept)
					}
					return err
				}
				c := rankWith(t, ID{8, 5}, 7, 1000)
				if world.Rank() == 2 {
					change(c.Entries(Shared))
				}
				return c.Sync(ctx, world, 9, layout)
			}) {
				want := fmt.Sprintf("comm: elastic.Run: commit 5 has other contents of %q on rank 0 than on rank 2: "+
					"all ranks have to commit the same, at the same point of the program", name)
				if err == nil || err.Error() != want || comm.ExitCode(err) != 2 {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// TestParts: a rank that is started again gets its part of a commit from its partner, and nobody goes on with parts of two commits.
func TestParts(t *testing.T) {
	const size, part = 4, 1 << 20
	name := func(rank int) string { return fmt.Sprint("part ", rank) }
	onTransports(t, func(t *testing.T, transport comm.Transport) {
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
			c.Commit()
			return nil
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
	c.moves = nil
	return c
}

// TestPartsThatAreLost: all ranks say which part nobody has.
func TestPartsThatAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		parts [3]string // of ranks that have a commit; a rank without one is new
		owned [3]string
		want  string
	}{
		"both copies": {[3]string{"a", "", ""}, [3]string{"a", "b", "c"}, `nobody has part "b" of rank 1: the rank that had it and the one with its copy are gone, or there never was one`},
		"claimed":     {[3]string{"", "", ""}, [3]string{"a", "b", "a"}, `part "a" is in the States of ranks 0 and 2: a part belongs to one rank`},
		"nobody's":    {[3]string{"a", "b", "c"}, [3]string{"a", "b", ""}, `part "c" is in the State of no rank any more: rank 2 has a copy of it`},
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
					own.parts = owned
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
	errs := inWorld(t, "shm", 2, func(ctx context.Context, world *comm.Group) error {
		c := rankWith(t, ID{}, 1, 100, fmt.Sprint(world.Rank()))
		if err := c.Sync(ctx, world, 1, layout); err != nil {
			return err
		}
		if world.Rank() == 1 {
			c.last.Number++
		}
		fill(t, c, Shared, 2, 100)
		fill(t, c, fmt.Sprint(world.Rank()), 2, 100)
		c.Commit()
		return c.Await(t.Context())
	})
	if err := fmt.Sprint(errs[0]); !strings.Contains(err, "rank 1 makes commit 3, and rank 0 commit 2: all ranks commit at the same points of the program") {
		t.Error(err)
	}
	if errs[1] == nil {
		t.Error("rank 1 has no error")
	}
}

// What another rank sends as the entries of a commit is anything.
func FuzzEntries(f *testing.F) {
	good, err := encode([]Entry{{Name: "a", Node: []byte{1}, Size: 100}, {Name: "b", Size: 3}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{})
	f.Add(binary.BigEndian.AppendUint64([]byte{0x9b}, 1<<60))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		v, err := newVersion(manifest, nil)
		if err != nil {
			return
		}
		for _, e := range v.entries {
			if len(e.Bytes) != e.Size {
				t.Fatalf("entry %q has %d bytes, want %d", e.Name, len(e.Bytes), e.Size)
			}
		}
	})
}
