package comm

import (
	"context"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// BroadcastObjects copies the values that objs of rank src point to into those that objs of every other rank point to.
// objs has the same length on all ranks, and every element is a pointer.
//
// Objects travel as CBOR, or by the codec of [WithCodec]; in size they are bounded, see [WithObjectLimit]. When one cannot
// be encoded, every rank of the call gets an [ObjectError] that says whose and why; as CBOR it cannot be if something of it would
// be lost, such as a field that is not exported and has no tag `cbor:"-"`. When one cannot be decoded, because it does not fit
// the type of its destination for instance, that is an ObjectError of this rank alone, and its destination and those after it are
// left as they were. The group goes on in both cases.
func BroadcastObjects(ctx context.Context, g *Group, objs []any, src int) error {
	o := newObjects(g, callBroadcastObjects)
	g = o.g
	o.call.Count = uint64(len(objs))
	o.root(src)
	if err := wantPointers(objs); err != nil {
		o.refuse(err)
	}
	if g.rank == src {
		g.guarded(callBroadcastObjects, func() { o.give(g.encodeList(objs)) })
	}
	size := []int64{o.size()}
	o.begin = func(*collective) task {
		return inPlace(plan.BinomialBroadcast(g.rank, g.Size(), sizeBytes, src), reduce.Bytes(size))
	}
	o.then = func(*collective) task {
		if t, none := o.excuse(src, size[0]); none {
			return t
		}
		if g.rank != src {
			o.payload = make([]byte, size[0])
		}
		return inPlace(plan.BinomialBroadcast(g.rank, g.Size(), len(o.payload), src), o.payload)
	}
	if err := o.run(ctx); err != nil || g.rank == src {
		return err
	}
	list, err := openList(o.payload)
	if err == nil && list.count != len(objs) {
		err = fmt.Errorf("is a list of %d: want %d", list.count, len(objs))
	}
	if err == nil {
		g.guarded(callBroadcastObjects, func() { _, err = g.decodeList(list, objs) })
	}
	return o.about(src, err)
}

// AllGatherObject returns in of every rank, in order of rank, on every rank. See [BroadcastObjects] for how objects travel.
func AllGatherObject[T any](ctx context.Context, g *Group, in T) ([]T, error) {
	o := newObjects(g, callAllGatherObject)
	g = o.g
	g.guarded(callAllGatherObject, func() { o.give(g.encode(in)) })
	return collect[T](ctx, o, true, func(all vector) task {
		return task{plan: g.choose.AllGatherApart(nil, g.rank, all.blocks, 1), src: all, dst: all}
	})
}

// GatherObject returns in of every rank, in order of rank, on rank dst, and nil elsewhere. See [BroadcastObjects] for how
// objects travel.
func GatherObject[T any](ctx context.Context, g *Group, in T, dst int) ([]T, error) {
	o := newObjects(g, callGatherObject)
	g = o.g
	o.root(dst)
	g.guarded(callGatherObject, func() { o.give(g.encode(in)) })
	return collect[T](ctx, o, g.rank == dst, func(all vector) task {
		return task{
			plan: plan.LinearGather(nil, g.rank, dst, len(o.payload), all.blocks),
			src:  vector{buf: o.payload}, dst: all,
		}
	})
}

// collect carries out o, which is about an object of every rank: move takes them to the ranks that want them.
func collect[T any](ctx context.Context, o *objects, wanted bool, move func(all vector) task) ([]T, error) {
	sizes := make([]int64, o.g.Size())
	var parts [][]byte
	o.begin = func(*collective) task { // the sizes go to all, so that all know of one that is missing
		sizes[o.g.rank] = o.size()
		return inPlace(o.g.choose.AllGather(o.g.rank, o.g.Size(), sizeBytes, 1), reduce.Bytes(sizes))
	}
	o.then = func(*collective) task {
		for r, n := range sizes {
			if t, none := o.excuse(r, n); none {
				return t
			}
		}
		if !wanted {
			return move(vector{})
		}
		parts = make([][]byte, len(sizes))
		for r, n := range sizes {
			parts[r] = make([]byte, n)
		}
		copy(parts[o.g.rank], o.payload)
		return move(partsOf(parts))
	}
	if err := o.run(ctx); err != nil || !wanted {
		return nil, err
	}
	all := make([]T, len(parts))
	for r, b := range parts {
		var err error
		o.g.guarded(callKind(o.call.Op), func() { err = o.g.decode(b, &all[r]) })
		if err != nil {
			return nil, o.about(r, err)
		}
	}
	return all, nil
}

// ScatterObject returns in[Rank] of rank src on every rank. len(in) is Size at src; elsewhere in does not matter. See
// [BroadcastObjects] for how objects travel.
func ScatterObject[T any](ctx context.Context, g *Group, in []T, src int) (T, error) {
	o := newObjects(g, callScatterObject)
	g = o.g
	o.root(src)
	var parts [][]byte
	var sizes []int64
	if g.rank == src {
		if len(in) != g.Size() {
			o.refusef("len(in) is %d: want Size = %d", len(in), g.Size())
		}
		g.guarded(callScatterObject, func() { parts, sizes = encodeAll(o, in) })
	}
	size := []int64{0}
	o.begin = func(*collective) task {
		return task{
			plan: plan.LinearScatter(nil, g.rank, src, sizeBytes, equalBlocks(g.Size(), sizeBytes)),
			src:  vector{buf: reduce.Bytes(sizes)}, dst: vector{buf: reduce.Bytes(size)},
		}
	}
	o.then = func(*collective) task {
		if t, none := o.excuse(src, size[0]); none {
			return t
		}
		o.payload = make([]byte, size[0])
		v := partsOf(parts)
		return task{
			plan: plan.LinearScatter(nil, g.rank, src, len(o.payload), v.blocks),
			src:  v, dst: vector{buf: o.payload},
		}
	}
	var out T
	err := o.run(ctx)
	if err == nil {
		g.guarded(callScatterObject, func() { err = o.about(src, g.decode(o.payload, &out)) })
	}
	return out, err
}

// encodeAll encodes the objects for all ranks. If that fails with one of them, nobody gets any.
func encodeAll[T any](o *objects, in []T) (parts [][]byte, sizes []int64) {
	parts, sizes = make([][]byte, len(in)), make([]int64, len(in))
	for i, obj := range in {
		var err error
		if parts[i], err = o.g.encode(obj); err != nil {
			o.give(nil, fmt.Errorf("number %d of %d %w", i+1, len(in), err))
			return nil, slices.Repeat([]int64{o.size()}, len(in))
		}
		sizes[i] = int64(len(parts[i]))
	}
	return parts, sizes
}
