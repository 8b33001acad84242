package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const brokenRank = 1

// breaking is JSON, and ends the goroutine that uses it.
type breaking struct{ end func() }

func (b breaking) Marshal(v any) ([]byte, error) {
	b.end()
	return json.Marshal(v)
}

func (b breaking) Unmarshal(data []byte, v any) error {
	b.end()
	return json.Unmarshal(data, v)
}

// brokenCalls run code of the caller's: an operation, or a codec.
var brokenCalls = map[string]func(ctx context.Context, g *Group, op Op) error{
	"AllReduce": func(ctx context.Context, g *Group, op Op) error { return AllReduce(ctx, g, []int{1}, op) },
	"ReduceScatter": func(ctx context.Context, g *Group, op Op) error {
		return ReduceScatter(ctx, g, []int{1}, []int{1, 1, 1}, op)
	},
	"BroadcastObjects": func(ctx context.Context, g *Group, _ Op) error {
		v := 1
		return BroadcastObjects(ctx, g, []any{&v}, 2)
	},
	"AllGatherObject": func(ctx context.Context, g *Group, _ Op) error { _, err := AllGatherObject(ctx, g, 1); return err },
	"GatherObject": func(ctx context.Context, g *Group, _ Op) error {
		_, err := GatherObject(ctx, g, 1, brokenRank)
		return err
	},
	"ScatterObject": func(ctx context.Context, g *Group, _ Op) error {
		_, err := ScatterObject(ctx, g, []int{1, 1, 1}, brokenRank)
		return err
	},
}

// TestACallersCodeThatPanicsFailsTheGroup: where the caller's code ends a call on one rank, the program may go on. All
// ranks get an AbortError that says which rank and what, and other groups go on. Package core tests when that happens.
func TestACallersCodeThatPanicsFailsTheGroup(t *testing.T) {
	errOwn := errors.New("no such unit")
	for what, end := range map[string]func(){"panic": func() { panic(errOwn) }, "runtime.Goexit": runtime.Goexit} {
		for name, call := range brokenCalls {
			t.Run(fmt.Sprintf("%s in %s", what, name), func(t *testing.T) {
				onTransports(t, []string{"tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
					w := world(3)
					defer w.close()
					w.run(func(ctx context.Context, world *Group) error {
						ends := func() {}
						if world.Rank() == brokenRank {
							ends = end
						}
						g, err := NewGroup(ctx, world, []int{0, 1, 2}, WithCodec(breaking{ends}))
						if err != nil {
							return err
						}
						op := NewOp("sum", true, func(acc, in []int) {
							acc[0] += in[0]
							ends()
						})
						thrown, err := caught(func() error { return call(ctx, g, op) })
						if thrown != nil && !errors.Is(thrown, errOwn) {
							return fmt.Errorf("thrown: %w", thrown)
						}
						for range 3 { // who had all it needed hears of it next
							err = errors.Join(err, Barrier(ctx, g))
						}
						abort, ok := errors.AsType[*AbortError](err)
						if !ok || abort.Rank != brokenRank || !strings.Contains(err.Error(), what+" in ") {
							return fmt.Errorf("got %w, want an AbortError of rank %d that says %s", err, brokenRank, what)
						}
						return errors.Join(g.Close(), Barrier(ctx, world))
					})
				})
			})
		}
	}
}

// caught is what f returns, or what it panics with; neither, if it ends its goroutine.
func caught(f func() error) (thrown, err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if v, ok := recover().(error); ok {
				thrown = v
			}
		}()
		err = f()
	})
	wg.Wait()
	return thrown, err
}
