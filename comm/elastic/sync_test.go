package elastic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

// inWorld runs program as each rank of a world, and returns their errors.
func inWorld(t testing.TB, transport string, size int, program func(ctx context.Context, world *comm.Group) error) []error {
	return inWorldAs(t, transport, size, func(p *testRank) error {
		world, err := p.init(t.Context())
		if err == nil {
			err = errors.Join(program(t.Context(), world), world.Close())
		}
		return err
	})
}

// inWorldAs runs program as each rank of the first world of a job, which it has not joined yet, and returns their errors.
func inWorldAs(t testing.TB, transport string, size int, program func(p *testRank) error) []error {
	j := &testJob{t: t, transport: transport}
	round, errs := j.newRound(1, size), make([]error, size)
	for r := range size {
		j.ranks.Go(func() { errs[r] = program(&testRank{job: j, rank: r, round: round}) })
	}
	j.ranks.Wait()
	return errs
}

// TestStatesThatDoNotFit: if a rank's State is another one, its error says so, with both sides, and the others wait for its end.
func TestStatesThatDoNotFit(t *testing.T) {
	type model struct{ A, B int }
	type newModel struct{ A, B, C int }
	items := func() []Item {
		return []Item{Slice("a", make([]float32, 10)), Value("step", new(int)), Value("model", new(model))}
	}
	with := func(n int, i Item) []Item {
		list := items()
		list[n] = i
		return list
	}
	for name, c := range map[string]struct {
		items []Item // of rank 1
		run   int
		want  string
	}{
		"length":   {with(0, Slice("a", make([]float32, 12))), 1, `"a" is float32 × 10 on rank 0, and float32 × 12 on rank 1`},
		"element":  {with(0, Slice("a", make([]float64, 10))), 1, `"a" is float32 × 10 on rank 0, and float64 × 10 on rank 1`},
		"type":     {with(1, Value("step", new(string))), 1, `"step" is int on rank 0, and string on rank 1`},
		"field":    {with(2, Value("model", new(newModel))), 1, `"model" is elastic.model struct { A int; B int; } on rank 0, and elastic.newModel struct { A int; B int; C int; } on rank 1`},
		"form":     {with(1, Slice("step", make([]int, 1))), 1, `"step" is int on rank 0, and int64 × 1 on rank 1`},
		"missing":  {items()[:2], 1, `rank 0 has "model" (elastic.model struct { A int; B int; }) in its State, and rank 1 has not`},
		"too many": {append(items(), Value("z", new(int))), 1, `rank 1 has "z" (int) in its State, and rank 0 has not`},
		"other":    {with(1, Value("stepp", new(int))), 1, `rank 0 has "step" (int) in its State, and rank 1 has not`},
		"none":     {nil, 1, `rank 0 has "a" (float32 × 10) in its State, and rank 1 has not`},
		"run":      {items(), 2, `rank 0 is in call 1 of elastic.Run, and rank 1 in call 2`},
		"order":    {[]Item{items()[2], items()[0], items()[1]}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			errs := inWorld(t, "shm", 3, func(ctx context.Context, world *comm.Group) error {
				list, run := items(), 1
				if world.Rank() == 1 {
					list, run = c.items, c.run
				}
				s, err := NewState(list...)
				if err == nil {
					err = s.begin()
				}
				if err != nil {
					return err
				}
				return s.sync(ctx, world, 1, layoutOf(run, s.items))
			})
			if c.want == "" {
				wantNoErrors(t, errs)
				return
			}
			var argument *comm.ArgumentError
			if !errors.As(errs[1], &argument) || argument.Error() != "comm: elastic.Run: "+c.want {
				t.Errorf("rank 1: %v", errs[1])
			}
			for _, r := range []int{0, 2} {
				var peer *comm.PeerError
				if !errors.As(errs[r], &peer) || peer.Rank != 1 || peer.Error() != "comm: elastic.Run: rank 1: "+c.want || !worldChanged(errs[r], nil) {
					t.Errorf("rank %d: %v", r, errs[r])
				}
			}
		})
	}
}

// A held is a State of which a test says what a rank has.
type held struct {
	state *State
	value string
	small []int16
	large []byte
}

// longest is the length of the longest slice: each of several ranks sends several chunks of it.
const longest = 8 * minPart

// pattern is what long slices are filled with, from some offset on: a copy is quick under the race detector, too.
var pattern = sync.OnceValue(func() []byte {
	b := make([]byte, longest+100)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
})

// newHeld has a commit, unless the commitID is zero, all of which is filled with n. It is long enough to come from two ranks.
func newHeld(t testing.TB, id commitID, n int) *held { return newHeldOf(t, id, n, 2*minPart) }

func newHeldOf(t testing.TB, id commitID, n, bytes int) *held {
	h := &held{small: make([]int16, 100), large: make([]byte, bytes)}
	var err error
	if h.state, err = NewState(Value("value", &h.value), Slice("small", h.small), Slice("large", h.large), Slice("empty", []int{})); err != nil {
		t.Fatal(err)
	}
	h.fill(n)
	if err := h.state.begin(); err != nil {
		t.Fatal(err)
	}
	if id != (commitID{}) {
		if err := h.state.take(); err != nil {
			t.Fatal(err)
		}
		h.state.last = id
		h.fill(-1) // the variables have changed since the commit
	}
	return h
}

func (h *held) fill(n int) {
	h.value = fmt.Sprint("value ", n)
	for i := range h.small {
		h.small[i] = int16(n + i)
	}
	copy(h.large, pattern()[n+1:])
}

// has reports what is not as fill(n) leaves it.
func (h *held) has(n int) error {
	if h.value != fmt.Sprint("value ", n) {
		return fmt.Errorf("value is %q, want that of %d", h.value, n)
	}
	for i, x := range h.small {
		if x != int16(n+i) {
			return fmt.Errorf("small[%d] is %d, want that of %d", i, x, n)
		}
	}
	if !bytes.Equal(h.large, pattern()[n+1:][:len(h.large)]) {
		return fmt.Errorf("the long slice is not that of %d", n)
	}
	return nil
}

// TestSync: all ranks come to the newest commit, in the variables and in the copy.
func TestSync(t *testing.T) {
	type rank struct {
		id       commitID
		contents int
	}
	for name, c := range map[string]struct {
		ranks []rank
		want  int
		id    commitID
	}{
		"the first world":             {[]rank{{contents: 4}, {contents: 5}, {contents: 6}}, 4, commitID{9, 1}},
		"a newcomer":                  {[]rank{{commitID{8, 3}, 7}, {commitID{8, 3}, 7}, {}}, 7, commitID{9, 3}},
		"a newcomer that is rank 0":   {[]rank{{}, {commitID{8, 3}, 7}, {commitID{8, 3}, 7}}, 7, commitID{9, 3}},
		"one survivor":                {[]rank{{}, {commitID{8, 3}, 7}, {}, {}}, 7, commitID{9, 3}},
		"one ahead":                   {[]rank{{commitID{8, 3}, 6}, {commitID{8, 4}, 7}, {commitID{8, 3}, 6}, {}}, 7, commitID{9, 4}},
		"one behind":                  {[]rank{{commitID{8, 4}, 7}, {commitID{8, 4}, 7}, {commitID{8, 3}, 6}}, 7, commitID{9, 4}},
		"more sources than there are": {[]rank{{commitID{8, 1}, 7}, {commitID{8, 1}, 7}, {}, {commitID{8, 1}, 7}, {commitID{8, 1}, 7}, {commitID{8, 1}, 7}, {}}, 7, commitID{9, 1}},
		"back from an older round":    {[]rank{{commitID{7, 9}, 6}, {commitID{8, 3}, 7}, {commitID{8, 3}, 7}}, 7, commitID{9, 3}},
		"nobody is new":               {[]rank{{commitID{8, 3}, 7}, {commitID{8, 3}, 7}}, 7, commitID{9, 3}},
		"alone":                       {[]rank{{contents: 3}}, 3, commitID{9, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "one survivor" { // no rank has a processor to spare
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(leastSpare - 1))
			}
			onTransports(t, func(t *testing.T, transport string) {
				all := make([]*held, len(c.ranks))
				for r, own := range c.ranks {
					bytes := len(c.ranks) * minPart
					switch {
					case testkit.Race: // two sources, of as little as they may have
						bytes = 2 * minPart
					case name == "a newcomer":
						bytes = longest
					}
					all[r] = newHeldOf(t, own.id, own.contents, bytes)
				}
				wantNoErrors(t, inWorld(t, transport, len(c.ranks), func(ctx context.Context, world *comm.Group) error {
					h := all[world.Rank()]
					if err := h.state.sync(ctx, world, 9, layoutOf(1, h.state.items)); err != nil {
						return err
					}
					for r, other := range all {
						if n := other.state.Commits(); n != c.id.number {
							return fmt.Errorf("this rank goes on, and rank %d has commit %d", r, n)
						}
					}
					if h.state.last != c.id {
						return fmt.Errorf("it has commit %v", h.state.last)
					}
					if err := h.has(c.want); err != nil {
						return err
					}
					// The copies are the same on all ranks, too.
					if err := h.state.sync(ctx, world, 10, layoutOf(1, h.state.items)); err != nil {
						return fmt.Errorf("in another world: %w", err)
					}
					h.fill(0)
					return errors.Join(h.state.restore(), h.has(c.want))
				}))
			})
		})
	}
}

// TestCommitsThatDiffer: if two ranks have different contents for the same commit, every rank says so, and for which value. A rank with an
// older commit keeps it.
func TestCommitsThatDiffer(t *testing.T) {
	for name, change := range map[string]func(h *held){
		"value": func(h *held) { h.value = "a longer value" },
		"small": func(h *held) { h.small[99]++ },
		"large": func(h *held) { h.large[len(h.large)-1]++ },
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range inWorld(t, "shm", 4, func(ctx context.Context, world *comm.Group) error {
				if world.Rank() == 1 {
					h := newHeld(t, commitID{8, 4}, 6)
					err := h.state.sync(ctx, world, 9, layoutOf(1, h.state.items))
					if kept := errors.Join(h.state.restore(), h.has(6)); kept != nil {
						return kept
					}
					return err
				}
				h := newHeld(t, commitID{}, 7)
				if world.Rank() == 2 {
					change(h)
				}
				if err := h.state.take(); err != nil {
					return err
				}
				h.state.last = commitID{8, 5}
				return h.state.sync(ctx, world, 9, layoutOf(1, h.state.items))
			}) {
				want := fmt.Sprintf("comm: elastic.Run: commit 5 has other contents of %q on rank 0 than on rank 2: "+
					"all ranks have to commit the same, at the same point of the program", name)
				if err == nil || err.Error() != want || worldChanged(err, nil) {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// TestAPartOfACommitIsNoState: a rank that has received a part of a commit, and none before, does not pass it on.
func TestAPartOfACommitIsNoState(t *testing.T) {
	newcomer := newHeld(t, commitID{}, 4)
	for r, err := range inWorld(t, "shm", 3, func(ctx context.Context, world *comm.Group) error {
		h := newcomer
		if r := world.Rank(); r > 0 {
			h = newHeld(t, commitID{8, 5}, r) // these differ, so that all fail once it has been sent
		}
		return h.state.sync(ctx, world, 9, layoutOf(1, h.state.items))
	}) {
		if err == nil {
			t.Errorf("rank %d: the commits do not differ", r)
		}
	}
	wantNoErrors(t, inWorld(t, "shm", 2, func(ctx context.Context, world *comm.Group) error {
		h := newcomer
		if world.Rank() == 1 {
			h = newHeld(t, commitID{}, 5)
		}
		return errors.Join(h.state.sync(ctx, world, 10, layoutOf(1, h.state.items)), h.has(5))
	}))
}
