package bench

import (
	"math/rand/v2"
	"testing"

	"github.com/gorun/gorun/comm"
)

// TestNumbersAreExact: the smallest types there are hold every partial result, or wrap to it, in whatever order ranks are
// combined. Larger types do all the more.
func TestNumbersAreExact(t *testing.T) {
	for _, op := range Ops {
		for _, ranks := range []int{1, 2, 3, 4, 7, 64, 127, 128, 200} {
			for i := range period {
				order := rand.Perm(ranks)
				exact, whole := int64(number(op, ranks, order[0], i)), int8(number(op, ranks, order[0], i))
				for _, rank := range order[1:] {
					n := number(op, ranks, rank, i)
					exact, whole = combine(op, exact, int64(n)), combine(op, whole, int8(n))
					if half := comm.NewBFloat16(float32(exact)); int64(half.Float32()) != exact {
						t.Fatalf("%s of %d ranks, element %d: %d is no bfloat16", op, ranks, i, exact)
					}
				}
				if op == "avg" {
					if exact%int64(ranks) != 0 || int64(whole) != exact {
						t.Fatalf("%s of %d ranks, element %d: the sum is %d, or %d", op, ranks, i, exact, whole)
					}
					exact, whole = exact/int64(ranks), int8(int(whole)/ranks)
				}
				if want := reduced(op, ranks, i); int64(want) != exact || int8(want) != whole {
					t.Fatalf("%s of %d ranks, element %d: %d, want %d, or %d", op, ranks, i, want, exact, whole)
				}
				if want := reduced(op, ranks, i); want == poison || int8(want) == int8(poison-256) {
					t.Fatalf("%s of %d ranks, element %d is poison", op, ranks, i)
				}
			}
		}
	}
}

func combine[T int8 | int64](op string, a, b T) T {
	switch op {
	case "prod":
		return a * b
	case "min":
		return min(a, b)
	case "max":
		return max(a, b)
	default:
		return a + b
	}
}

// TestNumbersDiffer: a block in the place of another rank's is found.
func TestNumbersDiffer(t *testing.T) {
	for rank := range 100 {
		for other := range rank {
			for i := range 3 {
				if n := number("", 101, rank, i); n == number("", 101, other, i) {
					t.Errorf("ranks %d and %d both give %d", rank, other, n)
				}
			}
		}
	}
}
