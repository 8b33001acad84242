package comm

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestOverlap: buffers of a call may be the same where its documentation says so; otherwise an overlap is an error.
func TestOverlap(t *testing.T) {
	lists := func(bufs ...[]int32) [][]int32 { return bufs }
	for _, c := range []struct {
		name string
		call func(ctx context.Context, g *Group, buf []int32) error
		bad  bool
	}{
		{"all-reduce, the same", func(ctx context.Context, g *Group, buf []int32) error {
			return AllReduceTo(ctx, g, buf[:4], buf[:4], Sum)
		}, false},
		{"all-reduce, next to each other", func(ctx context.Context, g *Group, buf []int32) error {
			return AllReduceTo(ctx, g, buf[:4], buf[4:8], Sum)
		}, false},
		{"all-reduce", func(ctx context.Context, g *Group, buf []int32) error {
			return AllReduceTo(ctx, g, buf[:4], buf[1:5], Sum)
		}, true},
		{"scan", func(ctx context.Context, g *Group, buf []int32) error { return ScanTo(ctx, g, buf[1:5], buf[:4], Sum) }, true},
		{"reduce, no root", func(ctx context.Context, g *Group, buf []int32) error {
			return ReduceTo(ctx, g, buf[:4], buf[g.Rank():4+g.Rank()], Sum, 0)
		}, false},
		{"all-gather, own block", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGather(ctx, g, buf[:8], buf[4*g.Rank():][:4])
		}, false},
		{"all-gather, other block", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGather(ctx, g, buf[:8], buf[4-4*g.Rank():][:4])
		}, true},
		{"all-gather, beside it", func(ctx context.Context, g *Group, buf []int32) error { return AllGather(ctx, g, buf[:8], buf[7:11]) }, true},
		{"gather", func(ctx context.Context, g *Group, buf []int32) error { return Gather(ctx, g, buf[:8], buf[4:8], 1) }, false},
		{"reduce-scatter, own block", func(ctx context.Context, g *Group, buf []int32) error {
			return ReduceScatter(ctx, g, buf[4*g.Rank():][:4], buf[:8], Sum)
		}, false},
		{"reduce-scatter", func(ctx context.Context, g *Group, buf []int32) error {
			return ReduceScatter(ctx, g, buf[1:5], buf[:8], Sum)
		}, true},
		{"all-to-all", func(ctx context.Context, g *Group, buf []int32) error { return AllToAll(ctx, g, buf[:8], buf[:8]) }, true},
		{"all-to-all with lengths", func(ctx context.Context, g *Group, buf []int32) error {
			return AllToAllV(ctx, g, buf[:4], []int{2, 2}, buf[3:7], []int{2, 2})
		}, true},
		{"all-to-all of lists", func(ctx context.Context, g *Group, buf []int32) error {
			return AllToAllW(ctx, g, lists(buf[:2], buf[2:4]), lists(buf[4:6], buf[3:5]))
		}, true},
		{"all-to-all into lists", func(ctx context.Context, g *Group, buf []int32) error {
			return AllToAllW(ctx, g, lists(buf[:2], buf[1:3]), lists(buf[4:6], buf[6:8]))
		}, true},
		{"all-gather, list", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGatherV(ctx, g, lists(buf[:4], buf[4:8]), buf[4*g.Rank():][:4])
		}, false},
		{"all-gather, other buffer", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGatherV(ctx, g, lists(buf[:4], buf[4:8]), buf[4-4*g.Rank():][:4])
		}, true},
		{"all-gather, the same buffer twice", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGatherV(ctx, g, lists(buf[:4], buf[:4]), buf[8:12])
		}, true},
		{"all-gather, in another order", func(ctx context.Context, g *Group, buf []int32) error {
			return AllGatherV(ctx, g, lists(buf[4:8], buf[:4]), buf[8:12])
		}, false},
		{"all-reduces, the same buffer twice", func(ctx context.Context, g *Group, buf []int32) error {
			return AllReduceCoalesced(ctx, g, lists(buf[4:8], buf[:2], buf[1:4]), Sum)
		}, true},
		{"all-reduces, in another order", func(ctx context.Context, g *Group, buf []int32) error {
			return AllReduceCoalesced(ctx, g, lists(buf[4:8], buf[2:2], buf[:2], buf[2:4]), Sum)
		}, false},
		{"reduce-scatter, list", func(ctx context.Context, g *Group, buf []int32) error {
			return ReduceScatterV(ctx, g, buf[2:6], lists(buf[:4], buf[4:8]), Sum)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := worldOver(t, "mem", 2)
			w.run(func(ctx context.Context, g *Group) error {
				err := c.call(ctx, g, make([]int32, 12))
				if bad := err != nil && strings.Contains(err.Error(), "overlap") && errors.As(err, new(*ArgumentError)); bad != c.bad {
					return errors.Join(errors.New("overlap"), err)
				}
				return nil
			})
			w.close()
		})
	}
}
