package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
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
		{Name: "empty"}, {Name: "large", Size: size}, {Name: "small", Size: 3}, {Name: "value", Tree: []byte(fmt.Sprint("value ", n))},
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
	if got, want := string(entries[3].Tree), fmt.Sprint("value ", n); got != want {
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
		if err := c.Commit(); err != nil {
			t.Fatal(err)
		}
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
		"value": func(entries []Entry) { entries[3].Tree = []byte("another value") },
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
