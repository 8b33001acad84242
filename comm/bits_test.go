package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Case 43 of torch's suite: what only moves keeps every bit, those of a NaN too.
func TestMovesKeepEveryBit(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		return errors.Join(
			kept(ctx, g, []float32{-1e-10, math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345), float32(math.Copysign(0, -1))}),
			kept(ctx, g, []float64{-1e-100, math.Float64frombits(0x7ff0000000000001), math.SmallestNonzeroFloat64}),
			kept(ctx, g, []Float16{NewFloat16(-0.1), 0x7c01, 0xfe00}), kept(ctx, g, []BFloat16{NewBFloat16(-0.1), 0x7f81}),
			kept(ctx, g, []int8{-2}), kept(ctx, g, []uint8{129}), kept(ctx, g, []int32{-1e5}), kept(ctx, g, []int64{-1e15}))
	})
}

// kept checks that every rank gets v from rank 1, unchanged.
func kept[T Element](ctx context.Context, g *Group, v []T) error {
	buf, all := make([]T, len(v)), make([]T, g.Size()*len(v))
	if g.Rank() == 1 {
		copy(buf, v)
	}
	err := errors.Join(Broadcast(ctx, g, buf, 1), AllGather(ctx, g, all, buf))
	want := reduce.Bytes(slices.Repeat(v, g.Size()))
	if err != nil || !slices.Equal(reduce.Bytes(all), want) {
		return fmt.Errorf("%T: got %x, %w, want %x", v, reduce.Bytes(all), err, want)
	}
	return nil
}

// cut cuts buf into size parts of equal length.
func cut[T any](buf []T, size int) [][]T {
	n := len(buf) / size
	parts := make([][]T, size)
	for i := range parts {
		parts[i] = buf[i*n : (i+1)*n]
	}
	return parts
}
