package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// Every operation on every type gives a result, or says that it has no meaning.
func TestWhatOperationsMakeSenseFor(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		return errors.Join(
			meanings[int](ctx, g, "int64", bitwise), meanings[int8](ctx, g, "int8", bitwise),
			meanings[int16](ctx, g, "int16", bitwise), meanings[int32](ctx, g, "int32", bitwise),
			meanings[int64](ctx, g, "int64", bitwise), meanings[uint](ctx, g, "uint64", bitwise),
			meanings[uint8](ctx, g, "uint8", bitwise), meanings[uint16](ctx, g, "uint16", bitwise),
			meanings[uint32](ctx, g, "uint32", bitwise), meanings[uint64](ctx, g, "uint64", bitwise),
			meanings[uintptr](ctx, g, "uint64", bitwise), meanings[float32](ctx, g, "float32", orders),
			meanings[float64](ctx, g, "float64", orders), meanings[complex64](ctx, g, "complex64", arithmetic),
			meanings[complex128](ctx, g, "complex128", arithmetic), meanings[Float16](ctx, g, "Float16", orders),
			meanings[BFloat16](ctx, g, "BFloat16", orders))
	})
}

// meanings tries all operations on T, known as name, of which those given are to make sense.
func meanings[T Element](ctx context.Context, g *Group, name string, sensible []Op) error {
	for _, op := range append([]Op{MinLoc, MaxLoc, PreMulSum(2)}, bitwise...) {
		want := slices.Contains(sensible, op)
		switch op {
		case MinLoc, MaxLoc: // as Min and Max
			want = slices.Contains(sensible, Op(Min))
		case PreMulSum(2):
			want = true
		}
		for call, err := range map[string]error{
			"AllReduce":          AllReduce(ctx, g, make([]T, 2), op),
			"ReduceScatterV":     ReduceScatterV(ctx, g, make([]T, 2), [][]T{make([]T, 2), make([]T, 2)}, op),
			"AllReduceCoalesced": AllReduceCoalesced(ctx, g, [][]T{make([]T, 2)}, op),
		} {
			refusal := fmt.Sprintf("comm: %s: %v has no meaning for %s", call, op, name)
			if want && err != nil || !want && (err == nil || err.Error() != refusal) {
				return fmt.Errorf("%s of %v on %s: got %w", call, op, name, err)
			}
		}
	}
	return nil
}

// oddFloats are the values that kernels get wrong.
var oddFloats = []float64{
	0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	math.SmallestNonzeroFloat64, math.MaxFloat32, -math.MaxFloat32, math.MaxFloat64, 65504, 65519, 65520, 5.9604644775390625e-08, 0.1,
}

// Every value with every other one, each of them on rank 0: the bits are those of Go's own arithmetic.
func TestOddValuesAreCombinedAsGoDoes(t *testing.T) {
	half := func(f float64) Float16 { return NewFloat16(float32(f)) }
	brain := func(f float64) BFloat16 { return NewBFloat16(float32(f)) }
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		return errors.Join(
			allPairs(ctx, g, func(f float64) float64 { return f }, func(f float64) float64 { return f }),
			allPairs(ctx, g, func(f float64) float32 { return float32(f) }, func(f float32) float32 { return f }),
			// Their sum and product are those of float32, rounded once.
			allPairs(ctx, g, half, Float16.Float32), allPairs(ctx, g, brain, BFloat16.Float32))
	})
}

// allPairs checks operations on the values that of makes of oddFloats; as tells what they are combined as.
func allPairs[T Element, F float32 | float64](ctx context.Context, g *Group, of func(float64) T, as func(T) F) error {
	var values [2][]T // of both ranks
	for _, a := range oddFloats {
		for _, b := range oddFloats {
			values[0], values[1] = append(values[0], of(a)), append(values[1], of(b))
		}
	}
	for _, c := range []struct {
		op Op
		do func(a, b F) F
	}{
		{Sum, func(a, b F) F { return a + b }},
		{Prod, func(a, b F) F { return a * b }},
		{Min, func(a, b F) F { return min(a, b) }},
		{Max, func(a, b F) F { return max(a, b) }},
	} {
		buf := slices.Clone(values[g.Rank()])
		if err := AllReduce(ctx, g, buf, c.op); err != nil {
			return err
		}
		for i, v := range buf {
			a, b := as(values[0][i]), as(values[1][i])
			got, want := as(v), as(of(float64(c.do(a, b))))
			if math.Float64bits(float64(got)) != math.Float64bits(float64(want)) && (got == got || want == want) {
				return fmt.Errorf("%v of %v and %v as %T is %v, want %v", c.op, a, b, v, got, want)
			}
		}
	}
	return nil
}

// Case 46 of torch's suite, and sums that are within the range in the end, though not on the way.
func TestHalfFloatsNearTheLimitOfTheirRange(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		n := g.Size()
		share := NewFloat16(65504 / float32(n))
		high := []Float16{share, NewFloat16([]float32{60000, 60000, -60000}[g.Rank()%3])}
		sum, back := float32(0), float32(0)
		for r := range n {
			sum, back = sum+share.Float32(), back+NewFloat16([]float32{60000, 60000, -60000}[r%3]).Float32()
		}
		if err := AllReduce(ctx, g, high, Sum); err != nil || high[0] != NewFloat16(sum) || high[1] != NewFloat16(back) {
			return fmt.Errorf("got %v and %v, %w, want %v and %v", high[0].Float32(), high[1].Float32(), err, sum, back)
		}
		return nil
	})
}

// Cases 2 to 4 of torch's suite: one bit that all have, and many that only some have.
func TestBitsOfAllRanks(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		for i := range 4 {
			bit, xor, or := 1<<i, 0, 0
			for r := range g.Size() {
				xor, or = xor^(r<<4^bit), or|r<<4|bit
			}
			for _, c := range []struct {
				op   Op
				want int
			}{{BitAnd, bit}, {BitOr, or}, {BitXor, xor}} {
				v := []int{g.Rank()<<4 | bit}
				if err := AllReduce(ctx, g, v, c.op); err != nil || v[0] != c.want {
					return fmt.Errorf("%v: got %#x, %w, want %#x", c.op, v[0], err, c.want)
				}
			}
		}
		return nil
	})
}
