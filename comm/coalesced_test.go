package comm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Torch's three: [r+1] and [r+2] multiplied, [r] and [r+1] for the least and the greatest.
func TestCoalescedAllReduce(t *testing.T) {
	factorial := func(n int) int {
		f := 1
		for i := 2; i <= n; i++ {
			f *= i
		}
		return f
	}
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		r, n := g.Rank(), g.Size()
		for _, c := range []struct {
			op       Op
			in, want [][]int
		}{
			{Prod, [][]int{{r + 1}, {r + 2}}, [][]int{{factorial(n)}, {factorial(n + 1)}}},
			{Min, [][]int{{r}, {r + 1}}, [][]int{{0}, {1}}},
			{Max, [][]int{{r}, {r + 1}}, [][]int{{n - 1}, {n}}},
			{Sum, [][]int{{r, 1}, nil, {2, 3, 4}}, [][]int{{n * (n - 1) / 2, n}, nil, {2 * n, 3 * n, 4 * n}}},
			{Avg, [][]int{{r * n}}, [][]int{{n * (n - 1) / 2}}},
			{MaxLoc, [][]int{{r, r}, {-r, r}}, [][]int{{n - 1, n - 1}, {0, 0}}},
			{Sum, [][]int{nil}, [][]int{nil}},
		} {
			if err := AllReduceCoalesced(ctx, g, c.in, c.op); err != nil || !reflect.DeepEqual(c.in, c.want) {
				return fmt.Errorf("%v: got %v, %w, want %v", c.op, c.in, err, c.want)
			}
		}
		half := [][]Float16{{NewFloat16(2048)}, {NewFloat16(1), NewFloat16(1)}}
		if err := AllReduceCoalesced(ctx, g, half, Avg); err != nil || half[0][0] != NewFloat16(2048) || half[1][1] != NewFloat16(1) {
			return fmt.Errorf("got %v, %w", half, err)
		}
		return nil
	})
}

func TestCoalescedCallsThatDiffer(t *testing.T) {
	for want, bufs := range map[string][2][][]float32{
		"rank 0 AllReduceCoalesced(float32 × 3 in buffers: 2, Sum) with checksum ": {{{1}, {2, 3}}, {{1, 2}, {3}}}, // as many elements
		"rank 1 AllReduceCoalesced(float32 × 3 in buffers: 1, Sum)":                {{{1}, {2, 3}}, {{1, 2, 3}}},
		"rank 1 AllReduceCoalesced(float32 × 2 in buffers: 2, Sum)":                {{{1}, {2, 3}}, {{1}, {2}}},
	} {
		inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
			var m *MismatchError
			if err := AllReduceCoalesced(ctx, g, bufs[g.Rank()], Sum); !errors.As(err, &m) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %w, want %s", err, want)
			}
			return nil
		})
	}
}

// Torch's assignment of tensors to buckets: every type fills buckets of its own.
func TestBuffersOfABucket(t *testing.T) {
	type buffer struct {
		typ   string
		bytes int
	}
	f32 := func(n int) buffer { return buffer{"float32", 4 * n} }
	f64 := func(n int) buffer { return buffer{"float64", 8 * n} }
	mixed := []buffer{f32(50), f64(25), f32(50), f64(25), f32(50), f64(25)}
	for _, c := range []struct {
		buffers []buffer
		limits  []int
		want    [][]int
	}{
		{mixed, []int{400}, [][]int{{0, 2}, {1, 3}, {4}, {5}}},
		{mixed, []int{200, 400}, [][]int{{0}, {1}, {2, 4}, {3, 5}}},
		{[]buffer{f32(100), f32(200), f32(100), f32(50)}, []int{400}, [][]int{{0}, {1}, {2}, {3}}},
		{[]buffer{f32(10), f32(10), f32(10), f32(10)}, []int{40, 80}, [][]int{{0}, {1, 2}, {3}}},
	} {
		var buckets [][]int
		fillings, open := map[string]*bucketSize{}, map[string][]int{}
		for i, b := range c.buffers {
			if fillings[b.typ] == nil {
				fillings[b.typ] = &bucketSize{limits: c.limits}
			}
			open[b.typ] = append(open[b.typ], i)
			if fillings[b.typ].add(b.bytes) {
				buckets, open[b.typ] = append(buckets, open[b.typ]), nil
			}
		}
		for _, rest := range open {
			if rest != nil {
				buckets = append(buckets, rest)
			}
		}
		slices.SortFunc(buckets, slices.Compare)
		if !reflect.DeepEqual(buckets, c.want) {
			t.Errorf("%v with limits %v: got %v, want %v", c.buffers, c.limits, buckets, c.want)
		}
	}
}

// Whatever the lengths and limits, every buffer is reduced, and in no more messages than it takes.
func TestBucketer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 20).Draw(t, "lengths")
		limits := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 3).Draw(t, "limits")
		inMemory(t, 3, func(ctx context.Context, g *Group) error {
			b := NewBucketer[int32](g, Sum, limits[0], limits[1:]...)
			for step := range 2 {
				bufs := make([][]int32, len(lengths))
				for i, n := range lengths {
					bufs[i] = make([]int32, n)
					for j := range bufs[i] {
						bufs[i][j] = int32(i + j + step)
					}
					b.Add(bufs[i])
				}
				if err := b.Flush(ctx); err != nil {
					return err
				}
				for i, buf := range bufs {
					for j, v := range buf {
						if v != int32(3*(i+j+step)) {
							return fmt.Errorf("step %d, buffer %d: got %v", step, i, buf)
						}
					}
				}
			}
			return nil
		})
	})
}

func TestBucketsStartWhenTheyAreFull(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		b := NewBucketer[float64](g, Sum, 16)
		bufs := [][]float64{{1}, {2}, {3}}
		for _, buf := range bufs {
			b.Add(buf)
		}
		if len(b.works) != 1 {
			return fmt.Errorf("%d buckets have started", len(b.works))
		}
		if err := b.works[0].Wait(ctx); err != nil || bufs[1][0] != 4 {
			return fmt.Errorf("got %v, %w", bufs, err)
		}
		if err := b.Flush(ctx); err != nil || bufs[2][0] != 6 {
			return fmt.Errorf("got %v, %w", bufs, err)
		}
		wrong := NewBucketer[float64](g, BitAnd, 16)
		wrong.Add(bufs[0])
		var argument *ArgumentError
		if err := wrong.Flush(ctx); !errors.As(err, &argument) {
			return fmt.Errorf("got %w", err)
		}
		return Barrier(ctx, g)
	})
}
