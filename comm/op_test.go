package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env/testing/testkit"
)

// affine combines maps x → a·x + b, each two elements, by composition. It does not commute.
var affine = NewBlockOp("affine", 2, false, func(acc, in []uint64) {
	for i := 0; i < len(acc); i += 2 {
		acc[i], acc[i+1] = acc[i]*in[i], acc[i]*in[i+1]+acc[i+1]
	}
})

var odds = func() []uint64 {
	v := make([]uint64, 1<<17)
	for i := range v {
		v[i] = uint64(i)*2 + 1
	}
	return v
}()

// maps are n affine maps of rank r.
func maps(r, n int) []uint64 { return slices.Clone(odds[r*1000:][:2*n]) }

// compositions caches the results of composed: all ranks ask for the same ones.
var compositions sync.Map

// composed returns the composition of maps of ranks lo to hi-1, in order of rank. Callers share it, and do not change
// it.
func composed(lo, hi, n int) []uint64 {
	key := [3]int{lo, hi, n}
	if known, ok := compositions.Load(key); ok {
		return known.([]uint64)
	}
	acc := maps(lo, n)
	for r := lo + 1; r < hi; r++ {
		in := maps(r, n)
		for i := 0; i < len(acc); i += 2 {
			acc[i], acc[i+1] = acc[i]*in[i], acc[i]*in[i+1]+acc[i+1]
		}
	}
	compositions.Store(key, acc)
	return acc
}

// Cases 77 and 79 of MPICH's suite: whatever the algorithm, in order of rank.
func TestOperationsThatDoNotCommuteAreAppliedInOrderOfRank(t *testing.T) {
	onGrid(t, func(ctx context.Context, g *Group) error {
		r, size := g.Rank(), g.Size()
		for _, n := range []int{0, 1, 5, 3000} { // maps; the last are long enough for a ring
			whole := composed(0, size, n)
			check := func(call string, err error, got, want []uint64) error {
				if err != nil || !bytes.Equal(reduce.Bytes(got), reduce.Bytes(want)) {
					return fmt.Errorf("%s of %d maps: %w, or not in order", call, n, err)
				}
				return nil
			}
			all := maps(r, n)
			errs := []error{check("AllReduce", AllReduce(ctx, g, all, affine), all, whole)}
			for _, root := range []int{0, size - 1} {
				v, want := maps(r, n), maps(r, n)
				if r == root {
					want = whole
				}
				errs = append(errs, check("Reduce", Reduce(ctx, g, v, affine, root), v, want))
			}
			block := n / size
			v, out := maps(r, block*size), make([]uint64, 2*block)
			want := composed(0, size, block*size)[2*r*block : 2*(r+1)*block]
			errs = append(errs, check("ReduceScatter", ReduceScatter(ctx, g, out, v, affine), out, want))
			v = maps(r, n)
			errs = append(errs, check("Scan", Scan(ctx, g, v, affine), v, composed(0, r+1, n)))
			v, want = maps(r, n), maps(r, n)
			if r > 0 {
				want = composed(0, r, n)
			}
			errs = append(errs, check("ExScan", ExScan(ctx, g, v, affine), v, want))
			if err := errors.Join(errs...); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMinAndMaxWithTheirPlace(t *testing.T) {
	onGrid(t, func(ctx context.Context, g *Group) error {
		r, size := g.Rank(), g.Size()
		type pair [2]float64
		for _, c := range []struct {
			name  string
			op    Op
			value func(r int) float64
			want  pair
		}{
			{"lowest", MinLoc, func(r int) float64 { return float64((r + 1) % size) }, pair{0, float64(size - 1)}},
			{"highest", MaxLoc, func(r int) float64 { return float64((r + 1) % size) }, pair{float64(size - 1), float64(max(size-2, 0))}},
			{"ties", MaxLoc, func(int) float64 { return 5 }, pair{5, 0}},
			{"NaN wins", MinLoc, func(r int) float64 { return map[bool]float64{true: math.NaN()}[r >= size/2] }, pair{math.NaN(), float64(size / 2)}},
		} {
			f := []float64{c.value(r), float64(r), -1, 0} // two pairs
			h := []Float16{NewFloat16(float32(c.value(r))), NewFloat16(float32(r))}
			if err := errors.Join(AllReduce(ctx, g, f, c.op), AllReduce(ctx, g, h, c.op)); err != nil {
				return err
			}
			same := func(got pair) bool {
				return got == c.want || got[0] != got[0] && c.want[0] != c.want[0] && got[1] == c.want[1]
			}
			if !same(pair(f[:2])) || f[2] != -1 || f[3] != 0 || !same(pair{float64(h[0].Float32()), float64(h[1].Float32())}) {
				return fmt.Errorf("%s: got %v and %v, want %v", c.name, f, h, c.want)
			}
		}
		// The reduction of which every rank keeps a block does not tear pairs apart.
		in, out := make([]int16, 2*size), make([]int16, 2)
		for i := range size {
			in[2*i], in[2*i+1] = int16(-r*i), int16(r)
		}
		if err := ReduceScatter(ctx, g, out, in, MinLoc); err != nil || out[0] != int16(-r*(size-1)) || r > 0 && out[1] != int16(size-1) {
			return fmt.Errorf("got %v, %w", out, err)
		}
		return nil
	})
}

// An operation that changes its second operand, though it must not, spoils nothing: results are right, and so are
// buffers that are only read.
func TestOperationsThatChangeTheirOperand(t *testing.T) {
	testkit.WithoutRace(t)
	careless := NewOp("careless sum", true, func(acc, in []int64) {
		for i := range acc {
			acc[i] += in[i]
			in[i] = -77
		}
	})
	onTransports(t, []string{"mem", "shm", "halves", "uneven", "halves" + inPieces}, func(t *testing.T, world func(int) *testWorld) {
		w := world(5)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			k, rank, size := integers[int64](), g.Rank(), g.Size()
			own := func(i int) int64 { return input(rank, i) }
			sum := func(i int) int64 { return reference(Sum, 0, size, i) }
			for _, n := range []int{size, 300 * size, 20_000 * size} {
				buf := k.vector(g, 0, n)
				if err := samePeriods("AllReduce", AllReduce(ctx, g, buf, careless), buf, sum); err != nil {
					return err
				}
				buf, want := k.vector(g, 0, n), own
				if rank == 1 {
					want = sum
				}
				if err := samePeriods("Reduce", Reduce(ctx, g, buf, careless, 1), buf, want); err != nil {
					return err
				}
				in, out := k.vector(g, 0, n), make([]int64, n/size)
				if err := samePeriods("ReduceScatter", ReduceScatter(ctx, g, out, in, careless), out, func(i int) int64 { return sum(rank*len(out) + i) }); err != nil {
					return err
				}
				if err := samePeriods("the input of ReduceScatter", nil, in, own); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
