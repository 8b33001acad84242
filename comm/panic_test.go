package comm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env/testing/testkit"
)

var errOwn = errors.New("no such unit")

// endings are how the caller's code may end without returning.
var endings = map[string]func(){
	"panic":  func() { panic("worn out") },
	"error":  func() { panic(errOwn) },
	"fault":  func() { var none []int; none[len(none)] = 1 },
	"goexit": runtime.Goexit,
}

// A fuse lets the caller's code on one rank go so many times, and ends it then.
type fuse struct {
	left atomic.Int64
	end  func()
}

func (f *fuse) burn() {
	if f != nil && f.left.Add(-1) == 0 {
		f.end()
	}
}

// sumOf is an operation that burns f.
func sumOf(f *fuse) Op {
	return NewOp("sum", true, func(acc, in []int) {
		for i := range acc {
			acc[i] += in[i]
		}
		f.burn()
	})
}

// A codecOf burns f.
type codecOf struct{ *fuse }

func (c codecOf) Marshal(v any) ([]byte, error) {
	c.burn()
	return json.Marshal(v)
}

func (c codecOf) Unmarshal(data []byte, v any) error {
	c.burn()
	return json.Unmarshal(data, v)
}

// A brokenCall runs the caller's code, n elements at a time; it reports whether what it has got is right.
type brokenCall func(ctx context.Context, g *Group, op Op, n int) (right bool, err error)

var brokenCalls = map[string]brokenCall{
	"AllReduce": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		buf := ones(n)
		err := AllReduce(ctx, g, buf, op)
		return all(buf, g.Size()), err
	},
	"IAllReduce": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		buf := ones(n)
		err := IAllReduce(g, buf, op).Wait(ctx)
		return all(buf, g.Size()), err
	},
	"AllReduce behind another": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		IBarrier(g)
		buf := ones(n)
		err := AllReduce(ctx, g, buf, op)
		return all(buf, g.Size()), err
	},
	"AllReduceCoalesced": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		one, other := ones(n), ones(3)
		err := AllReduceCoalesced(ctx, g, [][]int{one, other}, op)
		return all(one, g.Size()) && all(other, g.Size()), err
	},
	"Reduce": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		buf := ones(n)
		err := Reduce(ctx, g, buf, op, brokenRank)
		return g.Rank() != brokenRank || all(buf, g.Size()), err
	},
	"ReduceScatter": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		buf := make([]int, n)
		err := ReduceScatter(ctx, g, buf, ones(n*g.Size()), op)
		return all(buf, g.Size()), err
	},
	"Scan": func(ctx context.Context, g *Group, op Op, n int) (bool, error) {
		buf := ones(n)
		err := Scan(ctx, g, buf, op)
		return all(buf, g.Rank()+1), err
	},
	"BroadcastObjects": func(ctx context.Context, g *Group, _ Op, n int) (bool, error) {
		v := n * g.Rank()
		err := BroadcastObjects(ctx, g, []any{&v}, g.Size()-1)
		return v == n*(g.Size()-1), err
	},
	"AllGatherObject": func(ctx context.Context, g *Group, _ Op, n int) (bool, error) {
		v, err := AllGatherObject(ctx, g, n)
		return len(v) == g.Size() && all(v, n), err
	},
	"GatherObject": func(ctx context.Context, g *Group, _ Op, n int) (bool, error) {
		v, err := GatherObject(ctx, g, n, brokenRank)
		return g.Rank() != brokenRank || len(v) == g.Size() && all(v, n), err
	},
	"ScatterObject": func(ctx context.Context, g *Group, _ Op, n int) (bool, error) {
		v, err := ScatterObject(ctx, g, ones(g.Size()), brokenRank)
		return v == 1, err
	},
}

const brokenRank = 1

func ones(n int) []int {
	return slices.Repeat([]int{1}, n)
}

func all(buf []int, want int) bool {
	return bytes.Equal(reduce.Bytes(buf), reduce.Bytes(slices.Repeat([]int{want}, len(buf))))
}

// When an operation or a codec of the caller's ends a collective on one rank, in whatever way, the program may go on
// there. No rank ever gets wrong numbers without an error, all get an error that says which rank and what, and other
// groups go on.
func TestACallersCodeThatPanicsFailsTheGroup(t *testing.T) {
	testkit.WithoutRace(t)
	var names []string
	for name := range brokenCalls {
		names = append(names, name)
	}
	slices.Sort(names)
	onTransports(t, []string{"mem", "tcp", "shm", "mixed"}, func(t *testing.T, world func(int) *testWorld) {
		for i, name := range names {
			call := brokenCalls[name]
			if strings.HasSuffix(t.Name(), "/mixed") && i%3 != 0 && testing.Short() { // its parts are those of tcp and of shm
				continue
			}
			t.Run(name, func(t *testing.T) {
				w := world(4)
				w.t = t
				defer w.close()
				for how := range endings {
					for _, n := range []int{1, 40_000} {
						if variant := how == "error" || how == "fault"; n > 1 && variant && testing.Short() { // which are panics too
							continue
						}
						t.Run(fmt.Sprintf("%s/%d", how, n), func(t *testing.T) {
							w.t = t
							w.run(func(ctx context.Context, world *Group) error { return breaks(ctx, world, call, how, n) })
						})
					}
				}
			})
		}
	})
}

// breaks makes call on a group of all ranks of world, of which one ends it as how says, and checks what becomes of
// that.
func breaks(ctx context.Context, world *Group, call brokenCall, how string, n int) (wrong error) {
	defer func() {
		if wrong != nil {
			world.Abort(wrong)
		}
	}()
	var f *fuse
	if world.Rank() == brokenRank {
		f = &fuse{end: endings[how]}
		f.left.Store(1)
	}
	g, err := NewGroup(ctx, world, []int{0, 1, 2, 3}, WithCodec(codecOf{f}))
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	err = Barrier(ctx, g)
	right, thrown := true, any(nil)
	if err == nil { // or rank 1 has come further already
		right, thrown, err = runs(func() (bool, error) { return call(ctx, g, sumOf(f), n) })
	}
	switch {
	case f == nil && thrown != nil:
		return fmt.Errorf("thrown: %v", thrown)
	case f == nil && err == nil && !right:
		return errors.New("wrong numbers")
	case f != nil && err == nil && thrown == nil:
		return errors.New("the panic has gone")
	case how == "error" && f != nil && !errors.Is(err, errOwn) && thrown != any(errOwn):
		return fmt.Errorf("got %w and %v, want %v", err, thrown, errOwn)
	}
	for i := 0; i < 3 && err == nil; i++ { // who had all it needed hears of it next
		err = Barrier(ctx, g)
	}
	abort, ok := errors.AsType[*AbortError](err)
	want := map[bool]string{true: "runtime.Goexit in ", false: "panic in "}[how == "goexit"]
	if !ok || abort.Rank != brokenRank || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("got %w, want an AbortError of rank %d that says %q", err, brokenRank, want)
	}
	return AllReduce(ctx, world, ones(n), Sum)
}

// runs is what f returns, or what it panics with; neither, if it ends its goroutine.
func runs(f func() (bool, error)) (right bool, thrown any, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				thrown = v
			}
		}()
		thrown = "gone"
		right, err = f()
		thrown = nil
	})
	wg.Wait()
	return right, thrown, err
}
