package comm

import (
	"context"
	"errors"
	"fmt"
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
	twice := PreMulSum(2)
	for _, op := range append([]Op{MinLoc, MaxLoc, twice}, bitwise...) {
		want := slices.Contains(sensible, op)
		switch op {
		case MinLoc, MaxLoc: // as Min and Max
			want = slices.Contains(sensible, Op(Min))
		case twice:
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
