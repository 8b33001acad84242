package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
)

// lengths are the vector lengths, in elements, that collectives are tested with in a world of size.
func lengths(size int) []int { return []int{0, 1, size - 1, 10, 1000, 10007} }

// input is element i of rank r, small enough that sums and products are exact in every type and order.
func input(r, i int) int64 { return int64((r*7+i*3)%3 + 1) }

// reference combines the elements i of all ranks the slow way.
func reference(op Op, size, i int) int64 {
	acc := input(0, i)
	for r := 1; r < size; r++ {
		v := input(r, i)
		switch op {
		case Sum, Avg:
			acc += v
		case Prod:
			acc *= v
		case Min:
			acc = min(acc, v)
		case Max:
			acc = max(acc, v)
		case BitAnd:
			acc &= v
		case BitOr:
			acc |= v
		case BitXor:
			acc ^= v
		default:
			panic(op)
		}
	}
	return acc
}

var (
	arithmetic = []Op{Sum, Prod, Avg}
	orders     = append([]Op{Min, Max}, arithmetic...)
	bitwise    = append([]Op{BitAnd, BitOr, BitXor}, orders...)
)

// reductions checks all reducing collectives for one element type; of makes an element from a small integer, and
// avg divides as the type does.
func reductions[T Element](ctx context.Context, g *Group, ops []Op, of func(int64) T, avg func(sum int64, n int) T) error {
	size := g.Size()
	want := func(op Op, i int) T {
		v := reference(op, size, i)
		if op == Avg {
			return avg(v, size)
		}
		return of(v)
	}
	make := func(n int) []T {
		buf := make([]T, n)
		for i := range buf {
			buf[i] = of(input(g.Rank(), i))
		}
		return buf
	}
	for _, op := range ops {
		for _, n := range lengths(size) {
			if n > 10 && op != Sum { // what follows from length does not depend on the operation
				continue
			}
			var zero T
			name := fmt.Sprintf("%v of %d × %T", op, n, zero)
			buf := make(n)
			if err := AllReduce(ctx, g, buf, op); err != nil {
				return fmt.Errorf("AllReduce %s: %w", name, err)
			}
			for i := range buf {
				if buf[i] != want(op, i) {
					return fmt.Errorf("AllReduce %s: element %d is %v, want %v", name, i, buf[i], want(op, i))
				}
			}

			root := n % size
			buf = make(n)
			if err := Reduce(ctx, g, buf, op, root); err != nil {
				return fmt.Errorf("Reduce %s: %w", name, err)
			}
			for i := range buf {
				expect := of(input(g.Rank(), i)) // elsewhere than at the root buf keeps its input
				if g.Rank() == root {
					expect = want(op, i)
				}
				if buf[i] != expect {
					return fmt.Errorf("Reduce %s: element %d is %v, want %v", name, i, buf[i], expect)
				}
			}

			block := min(n, 1001)
			in, out := make(block*size), make(block)
			before := slices.Clone(in)
			if err := ReduceScatter(ctx, g, out, in, op); err != nil {
				return fmt.Errorf("ReduceScatter %s: %w", name, err)
			}
			if !slices.Equal(in, before) {
				return fmt.Errorf("ReduceScatter %s: changed its input", name)
			}
			for i := range out {
				if w := want(op, g.Rank()*block+i); out[i] != w {
					return fmt.Errorf("ReduceScatter %s: element %d is %v, want %v", name, i, out[i], w)
				}
			}
		}
	}
	return nil
}

func integers[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](ctx context.Context, g *Group) error {
	return reductions(ctx, g, bitwise, func(v int64) T { return T(v) }, func(s int64, n int) T { return T(s / int64(n)) })
}

func floats[T ~float32 | ~float64](ctx context.Context, g *Group) error {
	return reductions(ctx, g, orders, func(v int64) T { return T(v) }, func(s int64, n int) T { return T(s) / T(n) })
}

type grad float32 // a type of the caller's own

func TestReductionsOfEveryTypeAndOperation(t *testing.T) {
	checks := []func(context.Context, *Group) error{
		integers[int], integers[int8], integers[int16], integers[int32], integers[int64],
		integers[uint], integers[uint8], integers[uint16], integers[uint32], integers[uint64], integers[uintptr],
		floats[float32], floats[float64], floats[grad],
		func(ctx context.Context, g *Group) error {
			of := func(v int64) complex64 { return complex(float32(v), 0) }
			return reductions(ctx, g, arithmetic, of, func(s int64, n int) complex64 { return complex(float32(s)/float32(n), 0) })
		},
		func(ctx context.Context, g *Group) error {
			of := func(v int64) complex128 { return complex(float64(v), 0) }
			return reductions(ctx, g, arithmetic, of, func(s int64, n int) complex128 { return complex(float64(s)/float64(n), 0) })
		},
		func(ctx context.Context, g *Group) error {
			of := func(v int64) Float16 { return NewFloat16(float32(v)) }
			return reductions(ctx, g, orders, of, func(s int64, n int) Float16 { return NewFloat16(float32(s) / float32(n)) })
		},
		func(ctx context.Context, g *Group) error {
			of := func(v int64) BFloat16 { return NewBFloat16(float32(v)) }
			return reductions(ctx, g, orders, of, func(s int64, n int) BFloat16 { return NewBFloat16(float32(s) / float32(n)) })
		},
	}
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		for _, check := range checks {
			if err := check(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// moves checks the collectives that only move elements.
func moves[T Element](ctx context.Context, g *Group, of func(int) T) error {
	size := g.Size()
	for _, n := range lengths(size) {
		in := make([]T, n)
		for i := range in {
			in[i] = of(g.Rank()*31 + i)
		}
		out := make([]T, n*size)
		if err := AllGather(ctx, g, out, in); err != nil {
			return err
		}
		for i := range out {
			if want := of(i/n*31 + i%n); out[i] != want {
				return fmt.Errorf("AllGather of %d × %T: element %d is %v, want %v", n, in, i, out[i], want)
			}
		}
		for root := range size {
			buf := slices.Clone(in)
			if err := Broadcast(ctx, g, buf, root); err != nil {
				return err
			}
			for i := range buf {
				if want := of(root*31 + i); buf[i] != want {
					return fmt.Errorf("Broadcast from %d of %d × %T: element %d is %v, want %v", root, n, in, i, buf[i], want)
				}
			}
		}
	}
	return nil
}

func TestMovesOfEveryWidth(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		return errors.Join(
			moves(ctx, g, func(v int) uint8 { return uint8(v) }),
			moves(ctx, g, func(v int) BFloat16 { return BFloat16(v) }),
			moves(ctx, g, func(v int) float32 { return float32(v) }),
			moves(ctx, g, func(v int) int { return v }),
			moves(ctx, g, func(v int) complex128 { return complex(float64(v), -float64(v)) }))
	})
}

func TestBarrierHoldsEverybody(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		for _, size := range sizes {
			w := world(size)
			var entered atomic.Int64
			w.run(func(ctx context.Context, g *Group) error {
				for round := int64(1); round <= 20; round++ {
					entered.Add(1)
					if err := Barrier(ctx, g); err != nil {
						return err
					}
					if n := entered.Load(); n < round*int64(size) {
						return fmt.Errorf("left barrier %d after %d entries", round, n)
					}
				}
				return nil
			})
			w.close()
		}
	})
}

func TestInPlaceBlocks(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		buf := make([]int32, 3*g.Size())
		own := buf[3*g.Rank() : 3*g.Rank()+3]
		for i := range own {
			own[i] = int32(10*g.Rank() + i)
		}
		if err := AllGather(ctx, g, buf, own); err != nil {
			return err
		}
		for i, v := range buf {
			if want := int32(10*(i/3) + i%3); v != want {
				return fmt.Errorf("AllGather in place: element %d is %d, want %d", i, v, want)
			}
		}
		if err := ReduceScatter(ctx, g, own, buf, Sum); err != nil {
			return err
		}
		for i, v := range own {
			if want := int32(g.Size() * (10*g.Rank() + i)); v != want {
				return fmt.Errorf("ReduceScatter in place: element %d is %d, want %d", i, v, want)
			}
		}
		return nil
	})
}

func TestScaledSum(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		factor := float64(g.Rank() + 1) // ranks may use different factors
		want := float64(0)
		for r := range g.Size() {
			want += float64(r+1) * 2
		}
		f, i, c, h := []float32{2}, []int16{2}, []complex64{2i}, []Float16{NewFloat16(2)}
		in := slices.Repeat([]float64{2}, g.Size())
		before := slices.Clone(in)
		out := []float64{0}
		err := errors.Join(
			AllReduce(ctx, g, f, PreMulSum(factor)), AllReduce(ctx, g, i, PreMulSum(factor)),
			AllReduce(ctx, g, c, PreMulSum(factor)), AllReduce(ctx, g, h, PreMulSum(factor)),
			ReduceScatter(ctx, g, out, in, PreMulSum(factor)))
		if err != nil {
			return err
		}
		if f[0] != float32(want) || i[0] != int16(want) || c[0] != complex(0, float32(want)) || h[0].Float32() != float32(want) || out[0] != want {
			return fmt.Errorf("got %v %v %v %v %v, want %v", f[0], i[0], c[0], h[0].Float32(), out[0], want)
		}
		if !slices.Equal(in, before) {
			return errors.New("ReduceScatter scaled its input in place")
		}
		return nil
	})
}

func TestHalfFloatsAreRoundedOnce(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		// 1 + 8 × 2^-11: each addend alone is rounded away, their sum is not.
		tiny := float32(math.Ldexp(1, -11))
		buf := []Float16{NewFloat16(tiny)}
		sum := float32(1)
		if g.Rank() == 0 {
			buf[0] = NewFloat16(1)
		}
		sum += float32(g.Size()-1) * tiny
		if err := AllReduce(ctx, g, buf, Sum); err != nil {
			return err
		}
		if want := NewFloat16(sum); buf[0] != want {
			return fmt.Errorf("got %v, want %v", buf[0].Float32(), want.Float32())
		}
		return nil
	})
}

func TestAllRanksComputeTheSameBits(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		for _, n := range []int{1, 7, 5000, 20000} {
			buf := make([]float32, n)
			for i := range buf {
				buf[i] = float32(math.Sin(float64(g.Rank()*n+i))) * 1e3 // sums depend on their order
			}
			again := slices.Clone(buf)
			if err := errors.Join(AllReduce(ctx, g, buf, Sum), AllReduce(ctx, g, again, Sum)); err != nil {
				return err
			}
			all := make([]float32, n*g.Size())
			if err := AllGather(ctx, g, all, buf); err != nil {
				return err
			}
			for i, v := range all {
				if math.Float32bits(v) != math.Float32bits(again[i%n]) {
					return fmt.Errorf("element %d of rank %d is %x here and %x there", i%n, i/n, again[i%n], v)
				}
			}
		}
		return nil
	})
}

func TestNaNWinsMinAndMax(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		nan := float32(math.NaN())
		for _, op := range []Op{Min, Max} {
			f := []float32{float32(g.Rank()), float32(g.Rank())}
			h := []Float16{NewFloat16(float32(g.Rank()))}
			if g.Rank() == g.Size()/2 {
				f[1], h[0] = nan, NewFloat16(nan)
			}
			if err := errors.Join(AllReduce(ctx, g, f, op), AllReduce(ctx, g, h, op)); err != nil {
				return err
			}
			if f[0] != f[0] || f[1] == f[1] || h[0].Float32() == h[0].Float32() {
				return fmt.Errorf("%v: got %v and %v", op, f, h[0].Float32())
			}
		}
		return nil
	})
}

func TestWrongArgumentsAreToldAndHarmNothing(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			f, c := make([]float32, 4), make([]complex128, 4)
			for want, err := range map[string]error{
				"comm: AllReduce: BitAnd has no meaning for float32":                           AllReduce(ctx, g, f, BitAnd),
				"comm: AllReduce: Max has no meaning for complex128":                           AllReduce(ctx, g, c, Max),
				"comm: AllReduce: PreMulSum(0.5): the factor must be a whole number for int32": AllReduce(ctx, g, []int32{1}, PreMulSum(0.5)),
				"comm: AllReduce: no operation given: want Sum, Prod, Min, Max or another Op":  AllReduce(ctx, g, f, nil),
				"comm: Broadcast: no rank 3 in a group of 3":                                   Broadcast(ctx, g, f, 3),
				"comm: Reduce: no rank -1 in a group of 3":                                     Reduce(ctx, g, f, Sum, -1),
				"comm: AllGather: len(out) is 4: want Size × len(in) = 3 × 4":                  AllGather(ctx, g, f, f),
				"comm: ReduceScatter: len(in) is 4: want Size × len(out) = 3 × 4":              ReduceScatter(ctx, g, f, f, Sum),
				"comm: Send: no rank 7 in a group of 3":                                        Send(ctx, g, f, 7),
				"comm: Send: tag -1: want 0 to 2147483647":                                     Send(ctx, g, f, 0, AnyTag),
				"comm: Send: 2 tags given: want one at most":                                   ISend(g, f, 0, 1, 2).Wait(ctx),
				"comm: Recv: tag -2: want 0 to 2147483647, or AnyTag":                          IRecv(g, f, 0, -2).Err(),
			} {
				var bad *ArgumentError
				if !errors.As(err, &bad) || err.Error() != want {
					return fmt.Errorf("got %w, want %q", err, want)
				}
			}
			return Barrier(ctx, g)
		})
	})
}
