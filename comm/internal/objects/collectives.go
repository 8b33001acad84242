package objects

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
)

// Broadcast copies the values that objs of rank src point to into those that objs of every other rank point to.
func (g Group) Broadcast(ctx context.Context, objs []any, src int) error {
	o := g.begin(call.KindBroadcastObjects, len(objs))
	if err := wantPointers(objs); err != nil {
		o.Refuse(err)
	}
	if g.Rank() == src {
		o.Guard(func() { o.SetPayload(g.encodeList(objs)) })
	}
	encoded, err := o.Broadcast(ctx, src)
	if err != nil || g.Rank() == src {
		return err
	}
	l, err := openList(encoded)
	if err == nil && l.count != len(objs) {
		err = fmt.Errorf("is a list of %d: want %d", l.count, len(objs))
	}
	if err == nil {
		o.Guard(func() { _, err = g.decodeList(l, objs) })
	}
	return o.About(src, err)
}

// AllGather returns in of every rank, in order of rank.
func AllGather[T any](ctx context.Context, g Group, in T) ([]T, error) {
	o := g.begin(call.KindAllGatherObject, 1)
	o.Guard(func() { o.SetPayload(g.encode(in)) })
	encoded, err := o.AllGather(ctx)
	return decodeAll[T](g, o, encoded, err)
}

// Gather is AllGather on rank dst. Elsewhere it returns nil.
func Gather[T any](ctx context.Context, g Group, in T, dst int) ([]T, error) {
	o := g.begin(call.KindGatherObject, 1)
	o.Guard(func() { o.SetPayload(g.encode(in)) })
	encoded, err := o.Gather(ctx, dst)
	return decodeAll[T](g, o, encoded, err)
}

// Scatter returns in[Rank] of rank src.
func Scatter[T any](ctx context.Context, g Group, in []T, src int) (out T, err error) {
	o := g.begin(call.KindScatterObject, 1)
	var payloads [][]byte
	var cause error
	if g.Rank() == src {
		if len(in) != g.Size() {
			o.Refuse(fmt.Errorf("len(in) is %d: want Size = %d", len(in), g.Size()))
		}
		o.Guard(func() { payloads, cause = encodeAll(&g.Format, in) })
	}
	encoded, err := o.Scatter(ctx, payloads, cause, src)
	if err == nil {
		o.Guard(func() { err = o.About(src, g.decode(encoded, &out)) })
	}
	return out, err
}

func (g Group) begin(kind call.Kind, count int) *core.Objects {
	return core.NewObjects(g.Group, kind, count, g.limit())
}

// decodeAll decodes the objects of all ranks, if this rank has received them.
func decodeAll[T any](g Group, o *core.Objects, encoded [][]byte, err error) ([]T, error) {
	if err != nil || encoded == nil {
		return nil, err
	}
	all := make([]T, len(encoded))
	for r, b := range encoded {
		o.Guard(func() { err = g.decode(b, &all[r]) })
		if err != nil {
			return nil, o.About(r, err)
		}
	}
	return all, nil
}
