package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Case 28 of torch's suite, for every call whose lengths may differ: two ranks do not agree on how much one sends to
// the other. Both are named with both lengths, by whoever hears of it, and nobody's memory is touched beyond its
// buffers.
func TestLengthsThatDoNotFitAreToldWithBothRanks(t *testing.T) {
	parts := func(lengths ...int) (parts [][]float32) {
		for _, n := range lengths {
			parts = append(parts, make([]float32, n))
		}
		return parts
	}
	for _, big := range []int{0, 50_000} { // in elements: beyond what is sent before it is asked for
		four, five := big+4, big+5
		says := func(g *Group) int { // of what rank 1 sends or gets
			if g.Rank() == 1 {
				return five
			}
			return four
		}
		pair := func(call, does0, does1 string) [][]string {
			return [][]string{{"rank 0 " + call + " " + does0 + " rank 1", "rank 1 " + call + " " + does1 + " rank 0"}}
		}
		lists := func(call string) [][]string { // rank 1 and any other one
			of := func(r, n int) string { return fmt.Sprintf("rank %d "+call, r, n) }
			return [][]string{{of(0, four), of(1, five)}, {of(1, five), of(2, four)}}
		}
		expecting, sending := fmt.Sprintf("expecting %d elements from", four), fmt.Sprintf("sending %d elements to", five)
		for name, c := range map[string]struct {
			call func(ctx context.Context, g *Group) error
			want [][]string // one of these
		}{
			"AllToAllV": {func(ctx context.Context, g *Group) error {
				in, out := []int{1, 1, 1}, []int{1, 1, 1}
				switch g.Rank() {
				case 0:
					out[1] = four
				case 1:
					in[0] = five
				}
				return AllToAllV(ctx, g, make([]float32, out[1]+2), out, make([]float32, in[0]+2), in)
			}, pair("AllToAllV(float32)", expecting, sending)},
			"AllGatherV": {func(ctx context.Context, g *Group) error {
				out := parts(1, says(g), 1)
				return AllGatherV(ctx, g, out, out[g.Rank()])
			}, lists("AllGatherV(float32 × [1 %d 1])")},
			"GatherV": {func(ctx context.Context, g *Group) error {
				out := parts(1, says(g), 1)
				return GatherV(ctx, g, out, out[g.Rank()], 0)
			}, pair("GatherV(float32, to 0)", expecting, sending)},
			"ScatterV": {func(ctx context.Context, g *Group) error {
				in := parts(1, says(g), 1)
				return ScatterV(ctx, g, in[g.Rank()], in, 0)
			}, pair("ScatterV(float32, from 0)", fmt.Sprintf("sending %d elements to", four), fmt.Sprintf("expecting %d elements from", five))},
			"ReduceScatterV": {func(ctx context.Context, g *Group) error {
				in := [][]BFloat16{make([]BFloat16, says(g)), nil, nil}
				return ReduceScatterV(ctx, g, in[g.Rank()], in, Sum)
			}, lists("ReduceScatterV(BFloat16 × [%d 0 0], Sum)")},
		} {
			onTransports(t, []string{"mem", "shm"}, func(t *testing.T, world func(int) *testWorld) {
				w := world(3)
				defer w.close()
				for r, err := range w.results(func(ctx context.Context, g *Group) error {
					if err := c.call(ctx, g); err != nil {
						return err
					}
					return errors.Join(Barrier(ctx, g), Barrier(ctx, g)) // one that has what it came for hears of it here
				}) {
					var m *MismatchError
					if !errors.As(err, &m) || len(m.Calls) != 2 {
						t.Errorf("%s of %d: rank %d got %v, want a MismatchError", name, big, r, err)
						continue
					}
					var got []string
					for _, c := range m.Calls {
						got = append(got, fmt.Sprintf("rank %d %s", c.Rank, c.Call))
					}
					if !slices.ContainsFunc(c.want, func(want []string) bool { return slices.Equal(got, want) }) {
						t.Errorf("%s of %d: rank %d got %q, want %q", name, big, r, got, c.want)
					}
				}
			})
		}
	}
}

// A rank takes block 0 to be shorter and block 1 to be longer than the others do. Where both travel as one message, its
// length is the same.
func TestARankWithOtherLengthsGetsNoWrongResult(t *testing.T) {
	testkit.WithoutRace(t)
	onTransports(t, []string{"mem", "shm"}, testOtherLengths)
}

func testOtherLengths(t *testing.T, world func(int) *testWorld) {
	for _, ranks := range []int{3, 4} {
		for _, block := range []int{2, 300} {
			for other := range ranks {
				lengths := func(g *Group) (parts [][]float32) {
					for i := range ranks {
						n := block
						if g.Rank() == other && i != other {
							switch i {
							case (other + 1) % ranks:
								n--
							case (other + 2) % ranks:
								n++
							}
						}
						parts = append(parts, make([]float32, n))
					}
					return parts
				}
				for name, call := range map[string]func(ctx context.Context, g *Group) error{
					"AllGatherV": func(ctx context.Context, g *Group) error {
						parts := lengths(g)
						return AllGatherV(ctx, g, parts, parts[g.Rank()])
					},
					"ReduceScatterV": func(ctx context.Context, g *Group) error {
						parts := lengths(g)
						return ReduceScatterV(ctx, g, parts[g.Rank()], parts, Sum)
					},
				} {
					w := world(ranks)
					for r, err := range w.results(func(ctx context.Context, g *Group) error {
						if err := call(ctx, g); err != nil {
							return err
						}
						if g.Rank() == other {
							err := errors.New("got a result")
							g.Abort(err)
							return err
						}
						return errors.Join(Barrier(ctx, g), Barrier(ctx, g))
					}) {
						var m *MismatchError
						if !errors.As(err, &m) || r == other && m.Calls[0].Rank != other && m.Calls[1].Rank != other {
							t.Errorf("%s, %d ranks, blocks of %d, other lengths on rank %d: rank %d got %v", name, ranks, block, other, r, err)
						}
					}
					w.close()
				}
			}
		}
	}
}

// Cases 85 and 86 of MPICH's suite, which take memory: more than 2 GiB in one message, and in the sum of several.
func TestMoreThanTwoGiB(t *testing.T) {
	if os.Getenv("GORUN_TEST_LARGE") == "" {
		t.Skip("takes 9 GiB of memory: set GORUN_TEST_LARGE=1")
	}
	const n = 1<<31 + 100
	mark := func(r, i int) byte { return byte(i>>20 + i + 3*r) }
	fill := func(buf []byte, r int) {
		for i := range buf {
			buf[i] = mark(r, i)
		}
	}
	w := newTestWorld(t, transports["tcp"](t, 2))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		buf := make([]byte, n)
		fill(buf, g.Rank())
		if err := same("AllReduce", AllReduce(ctx, g, buf, Sum), buf, func(i int) byte { return mark(0, i) + mark(1, i) }); err != nil {
			return err
		}
		fill(buf, g.Rank())
		if err := same("Broadcast", Broadcast(ctx, g, buf, 1), buf, func(i int) byte { return mark(1, i) }); err != nil {
			return err
		}
		half := buf[:n/2+50]
		fill(half, g.Rank())
		var out []byte
		if g.Rank() == 0 {
			out = make([]byte, 2*len(half))
		}
		return same("Gather", Gather(ctx, g, out, half, 0), out, func(i int) byte { return mark(i/len(half), i%len(half)) })
	})
}
