package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestAllToAllW: blocks in buffers of their own arrive, also at ranks that call AllToAllV. Rank r sends r + s values to rank s, some of them none.
func TestAllToAllW(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(size int) *testWorld) {
		for size := 1; size <= 4; size++ {
			for _, scale := range []int{1, 3000, 100_000} {
				w := world(size)
				w.run(func(ctx context.Context, g *Group) error {
					in, out := make([][]int64, size), make([][]int64, size)
					var flat, flatOut []int64
					var counts []int
					for r := range size {
						n := scale * (g.Rank() + r)
						in[r], out[r] = make([]int64, n), make([]int64, n)
						for i := range in[r] {
							in[r][i] = int64(1000*g.Rank() + r + 7*i)
						}
						flat, flatOut, counts = append(flat, in[r]...), append(flatOut, out[r]...), append(counts, n)
					}
					var err error
					switch {
					case g.Rank() == 2:
						err = AllToAllV(ctx, g, flatOut, counts, flat, counts)
						for r, at := 0, 0; r < size; at, r = at+counts[r], r+1 {
							copy(out[r], flatOut[at:])
						}
					case scale == 3000:
						err = IAllToAllW(g, out, in).Wait(ctx)
					default:
						err = AllToAllW(ctx, g, out, in)
					}
					for r := range size {
						for i, x := range out[r] {
							if want := int64(1000*r + g.Rank() + 7*i); x != want {
								return errors.Join(err, fmt.Errorf("value %d of %d from rank %d is %d, want %d", i, len(out[r]), r, x, want))
							}
						}
					}
					return err
				})
				w.close()
			}
		}
	})
}

func TestAllToAllWRefuses(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		one := []int{1}
		for want, lists := range map[string][2][][]int{
			"comm: AllToAllV: len(out) is 1: want Size = 2":                                         {{one}, {one, {2}}},
			"comm: AllToAllV: len(in) is 3: want Size = 2":                                          {{one, {2}}, {{1}, {2}, {3}}},
			fmt.Sprintf("comm: AllToAllV: rank %d sends itself 1 elements and expects 2", g.Rank()): {{{1, 2}, {3, 4}}, {{5}, {6}}},
		} {
			var argument *ArgumentError
			if err := AllToAllW(ctx, g, lists[0], lists[1]); !errors.As(err, &argument) || err.Error() != want {
				return fmt.Errorf("got %w, want %s", err, want)
			}
		}
		return nil
	})
}
