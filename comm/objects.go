package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/objects"
)

// DefaultObjectLimit is the limit of [WithObjectLimit] if you do not set it: 64 MiB.
const DefaultObjectLimit = objects.DefaultLimit

// A Codec turns objects into bytes and back, as the functions of encoding/json do. Several goroutines may use it at
// once.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// objects returns g, and how objects travel in it.
func (g *Group) objects() objects.Group {
	if g == nil {
		return objects.Group{Group: core.NoGroup}
	}
	return objects.Group{Group: g.core, Format: g.format}
}

// BroadcastObjects copies the values that objs of rank src point to into those that objs of every other rank point to.
// objs has the same length on all ranks, and every element is a pointer.
//
// Objects travel as CBOR, or by the codec of [WithCodec]. Their size is limited; see [WithObjectLimit]. If an object
// cannot be encoded, every rank of the call gets an [ObjectError] that says whose object it is, and why. An object
// cannot be encoded as CBOR if something of it would be lost, such as a field that is not exported and has no tag
// `cbor:"-"`. If an object cannot be decoded, for instance because it does not fit the type of its destination, only
// this rank gets an ObjectError. That destination and those after it do not change. In both cases the group continues.
func BroadcastObjects(ctx context.Context, g *Group, objs []any, src int) error {
	return public(g.objects().Broadcast(ctx, objs, src))
}

// BroadcastObject returns in of rank src on every rank. On other ranks in does not matter. It is a [BroadcastObjects]
// of one object, and has that name in errors.
func BroadcastObject[T any](ctx context.Context, g *Group, in T, src int) (T, error) {
	var out, none T
	if g.Rank() == src {
		out = in
	}
	if err := BroadcastObjects(ctx, g, []any{&out}, src); err != nil {
		return none, err
	}
	return out, nil
}

// AllGatherObject returns in of every rank, in order of rank, on every rank. See [BroadcastObjects] for how objects
// travel.
func AllGatherObject[T any](ctx context.Context, g *Group, in T) ([]T, error) {
	all, err := objects.AllGather(ctx, g.objects(), in)
	return all, public(err)
}

// GatherObject returns in of every rank, in order of rank, on rank dst, and nil elsewhere. See [BroadcastObjects] for
// how objects travel.
func GatherObject[T any](ctx context.Context, g *Group, in T, dst int) ([]T, error) {
	all, err := objects.Gather(ctx, g.objects(), in, dst)
	return all, public(err)
}

// ScatterObject returns in[Rank] of rank src on every rank. On rank src len(in) is Size; on other ranks in does not
// matter. See [BroadcastObjects] for how objects travel.
func ScatterObject[T any](ctx context.Context, g *Group, in []T, src int) (T, error) {
	out, err := objects.Scatter(ctx, g.objects(), in, src)
	return out, public(err)
}

// SendObjects sends objs to rank dst of g, which receives them by RecvObjects. See [BroadcastObjects] for how objects
// travel. Their messages are in order with those of Send with tag 0. If a Recv matches a message of SendObjects, or a
// RecvObjects one of Send, it fails with a [MismatchError], and the message is lost.
func SendObjects(ctx context.Context, g *Group, objs []any, dst int) error {
	return public(g.objects().Send(ctx, objs, dst))
}

// RecvObjects receives the objects of a SendObjects of rank src of g (or AnySource) into what objs point to: every
// element is a pointer. If more than len(objs) objects come, it returns a [TruncateError]. If fewer come, it sets only
// the first Status.Count.
func RecvObjects(ctx context.Context, g *Group, objs []any, src int) (Status, error) {
	st, err := g.objects().Recv(ctx, objs, src)
	return Status(st), public(err)
}
