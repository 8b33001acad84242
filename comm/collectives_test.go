package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
)

func TestBarrierHoldsEverybody(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		const size = 5
		w := world(size)
		defer w.close()
		var entered atomic.Int64
		w.run(func(ctx context.Context, g *Group) error {
			for round := int64(1); round <= 20; round++ {
				entered.Add(1)
				if err := Barrier(ctx, g); err != nil {
					return err
				}
				if n := entered.Load(); n < round*size {
					return fmt.Errorf("left barrier %d after %d entries", round, n)
				}
			}
			return nil
		})
	})
}

func TestScaledSum(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
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
		below, sum := []float32{2}, float32(2) // rank 0 keeps its element
		if g.Rank() > 0 {
			sum = float32(g.Rank() * (g.Rank() + 1))
		}
		if err := ExScan(ctx, g, below, PreMulSum(factor)); err != nil || below[0] != sum {
			return fmt.Errorf("ExScan left %v, want %v: %w", below, sum, err)
		}
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
	onEveryPath(t, func(ctx context.Context, g *Group) error {
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
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		for _, n := range []int{1, 7, 5000, 20000} {
			buf := make([]float32, n)
			for i := range buf {
				buf[i] = float32(math.Sin(float64(g.Rank()*n+i))) * 1e3 // sums depend on their order
			}
			if n > 1 {
				buf[n-1] = math.Float32frombits(0x7fc00001 + uint32(g.Rank())) // NaNs that differ
			}
			again := slices.Clone(buf)
			if err := errors.Join(AllReduce(ctx, g, buf, Sum), AllReduce(ctx, g, again, Sum)); err != nil {
				return err
			}
			all := make([]float32, n*g.Size())
			if err := AllGather(ctx, g, all, buf); err != nil {
				return err
			}
			for r, there := range cut(all, g.Size()) {
				if !bytes.Equal(reduce.Bytes(there), reduce.Bytes(again)) {
					return fmt.Errorf("of %d elements rank %d has %x, and here there are %x", n, r, there, again)
				}
			}
		}
		return nil
	})
}

func probeError(ctx context.Context, g *Group, src, tag int) error {
	_, err := Probe(ctx, g, src, tag)
	if _, found, again := TryProbe(g, src, tag); found || again == nil || again.Error() != err.Error() {
		return fmt.Errorf("TryProbe got %v, %w", found, again)
	}
	return err
}

func TestWrongArgumentsAreToldAndHarmNothing(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 3))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		f, c := make([]float32, 4), make([]complex128, 4)
		_, group := NewGroup(ctx, g, []int{0, 3})
		_, twice := NewGroup(ctx, g, []int{1, 0, 1})
		_, nobody := NewGroup(ctx, g, nil)
		_, gather := GatherObject(ctx, g, 1, 3)
		_, scatter := ScatterObject(ctx, g, make([]int, 2), g.Rank())
		_, recv := RecvObjects(ctx, g, []any{(*int)(nil)}, 0)
		_, limit := NewGroup(ctx, g, []int{0}, WithObjectLimit(-1))
		for want, err := range map[string]error{
			"comm: AllReduce: BitAnd has no meaning for float32":                           AllReduce(ctx, g, f, BitAnd),
			"comm: AllReduce: Max has no meaning for complex128":                           AllReduce(ctx, g, c, Max),
			"comm: AllReduce: PreMulSum(0.5): the factor must be a whole number for int32": AllReduce(ctx, g, []int32{1}, PreMulSum(0.5)),
			"comm: AllReduce: no operation given: want Sum, Prod, Min, Max or another Op":  AllReduce(ctx, g, f, nil),
			"comm: Broadcast: no rank 3 in a group of 3":                                   Broadcast(ctx, g, f, 3),
			"comm: Reduce: no rank -1 in a group of 3":                                     Reduce(ctx, g, f, Sum, -1),
			"comm: AllGather: len(out) is 4: want Size × len(in) = 3 × 4":                  AllGather(ctx, g, f, f),
			"comm: AllReduce: affine is an operation on uint64, not on float32":            AllReduce(ctx, g, f, affine),
			"comm: AllReduce: affine: 3 elements given: want a multiple of 2":              AllReduce(ctx, g, make([]uint64, 3), affine),
			"comm: AllReduce: none was made without a function":                            AllReduce(ctx, g, f, NewOp[float32]("none", true, nil)),
			"comm: AllReduce: flat was made for blocks of 0: want at least 1":              AllReduce(ctx, g, f, NewBlockOp("flat", 0, true, func(_, _ []float32) {})),
			"comm: Reduce: MinLoc: 3 elements given: want a multiple of 2":                 Reduce(ctx, g, f[:3], MinLoc, 0),
			"comm: AllReduce: MaxLoc has no meaning for complex128":                        AllReduce(ctx, g, c, MaxLoc),
			"comm: Scan: LogicalOr has no meaning for Float16":                             Scan(ctx, g, []Float16{1}, LogicalOr),
			"comm: ExScan: Avg has no meaning for ExScan":                                  ExScan(ctx, g, f, Avg),
			"comm: AllGatherV: len(out) is 2: want Size = 3":                               AllGatherV(ctx, g, [][]float32{f, f}, f),
			"comm: AllGather: len(out) is 2: want Size × len(in) = 3 × 1":                  AllGather(ctx, g, f[:2], f[:1]),
			"comm: AllGather: len(out) is 4: want Size × len(in) = 3 × 1":                  AllGather(ctx, g, f, f[:1]),
			"comm: Gather: len(out) is 4: want Size × len(in) = 3 × 1":                     Gather(ctx, g, f, f[:1], g.Rank()), // as the root
			"comm: Scatter: len(in) is 2: want Size × len(out) = 3 × 1":                    Scatter(ctx, g, f[:1], f[:2], g.Rank()),
			"comm: Scatter: len(in) is 4: want Size × len(out) = 3 × 1":                    Scatter(ctx, g, f[:1], f, g.Rank()),
			"comm: GatherV: len(out) is 2: want Size = 3":                                  GatherV(ctx, g, [][]float32{f, f}, f, g.Rank()),
			"comm: ScatterV: len(in) is 4: want Size = 3":                                  ScatterV(ctx, g, f, [][]float32{f, f, f, f}, g.Rank()),
			"comm: Gather: no rank 9 in a group of 3":                                      Gather(ctx, g, f, f, 9),
			"comm: Scatter: no rank -2 in a group of 3":                                    Scatter(ctx, g, f, f, -2),
			"comm: ReduceScatterV: MinLoc: 3 elements given: want a multiple of 2":         ReduceScatterV(ctx, g, f[:3], nil, MinLoc),
			"comm: AllToAll: len(out) is 3: want len(in) = 4":                              AllToAll(ctx, g, f[:3], f),
			"comm: AllToAll: len(in) is 4: want a multiple of Size = 3":                    AllToAll(ctx, g, f, f),
			"comm: AllToAllV: len(outCounts) is 2: want Size = 3":                          AllToAllV(ctx, g, f, []int{2, 2}, f, []int{1, 1, 2}),
			"comm: AllToAllV: inCounts[0] is -1":                                           AllToAllV(ctx, g, f, []int{1, 1, 2}, f, []int{-1, 2, 3}),
			"comm: AllToAllV: inCounts add up to 3: want len(in) = 4":                      AllToAllV(ctx, g, f, []int{1, 1, 2}, f, []int{1, 1, 1}),
			"comm: AllToAllV: outCounts add up to more than len(out) = 4":                  AllToAllV(ctx, g, f, []int{1, 1 << 62, 1 << 62}, f, []int{1, 1, 2}),
			"comm: Probe: tag -2: want 0 to 2147483647, or AnyTag":                         probeError(ctx, g, 0, -2),
			"comm: Probe: no rank 4 in a group of 3":                                       probeError(ctx, g, 4, 0),
			"comm: ReduceScatter: len(in) is 4: want Size × len(out) = 3 × 4":              ReduceScatter(ctx, g, f, f, Sum),
			"comm: Send: no rank 7 in a group of 3":                                        Send(ctx, g, f, 7),
			"comm: Send: tag -1: want 0 to 2147483647":                                     Send(ctx, g, f, 0, AnyTag),
			"comm: Send: 2 tags given: want one at most":                                   ISend(g, f, 0, 1, 2).Wait(ctx),
			"comm: Recv: tag -2: want 0 to 2147483647, or AnyTag":                          IRecv(g, f, 0, -2).Err(),
			"comm: NewGroup: no rank 3 in a group of 3":                                    group,
			"comm: NewGroup: rank 1 is named twice in [1 0 1]":                             twice,
			"comm: NewGroup: no ranks given: a group has at least one":                     nobody,
			"comm: NewGroup: object limit -1: want 0 to 2147483647 bytes":                  limit,
			"comm: GatherObject: no rank 3 in a group of 3":                                gather,
			"comm: ScatterObject: len(in) is 2: want Size = 3":                             scatter,
			"comm: RecvObjects: objs[0] is *int: want a pointer that is not nil":           recv,
			"comm: BroadcastObjects: objs[1] is string: want a pointer that is not nil":    BroadcastObjects(ctx, g, []any{new(int), "x"}, 0),
			"comm: BroadcastObjects: no rank 5 in a group of 3":                            BroadcastObjects(ctx, g, nil, 5),
			"comm: SendObjects: no rank -1 in a group of 3":                                SendObjects(ctx, g, []any{1}, AnySource),
			"comm: AllReduceCoalesced: no buffers given: want at least one":                AllReduceCoalesced[int](ctx, g, nil, Sum),
			"comm: AllReduceCoalesced: MinLoc: len(bufs[0]) is 1: want a multiple of 2":    AllReduceCoalesced(ctx, g, [][]int{{1}, {2}}, MinLoc),
			"comm: AllReduceCoalesced: BitOr has no meaning for float64":                   AllReduceCoalesced(ctx, g, [][]float64{{1}}, BitOr),
		} {
			var bad *ArgumentError
			if !errors.As(err, &bad) || err.Error() != want {
				return fmt.Errorf("got %w, want %q", err, want)
			}
		}
		return Barrier(ctx, g)
	})
}
