package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
)

// affine combines maps x → a·x + b, each two elements, by composition. It does not commute.
var affine = NewBlockOp("affine", 2, false, func(acc, in []uint64) {
	for i := 0; i < len(acc); i += 2 {
		acc[i], acc[i+1] = acc[i]*in[i], acc[i]*in[i+1]+acc[i+1]
	}
})

func TestMinAndMaxWithTheirPlace(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
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
