package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
)

// BroadcastObjects copies the values that objs of rank src point to into those that objs of every other rank point to.
// objs has the same length on all ranks, and every element is a pointer.
//
// Objects travel as CBOR, or by the codec of [WithCodec]. Their size is limited; see [WithObjectLimit]. If an object
// cannot be encoded, every rank of the call gets an [ObjectError] that says whose object it is, and why. An object
// cannot be encoded as CBOR if something of it would be lost, such as a field that is not exported and has no tag
// `cbor:"-"`. If an object cannot be decoded, for instance because it does not fit the type of its destination, only
// this rank gets an ObjectError. That destination and those after it do not change. In both cases the group continues.
func BroadcastObjects(ctx context.Context, g *Group, objs []any, src int) error {
	o := newObjects(g, call.KindBroadcastObjects, len(objs))
	if err := wantPointers(objs); err != nil {
		o.Refuse(err)
	}
	if g.Rank() == src {
		o.Guard(func() { o.SetPayload(o.group.encodeList(objs)) })
	}
	encoded, err := o.Broadcast(ctx, src)
	if err != nil || g.Rank() == src {
		return public(err)
	}
	list, err := openList(encoded)
	if err == nil && list.count != len(objs) {
		err = fmt.Errorf("is a list of %d: want %d", list.count, len(objs))
	}
	if err == nil {
		o.Guard(func() { _, err = o.group.decodeList(list, objs) })
	}
	return public(o.About(src, err))
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
	o := newObjects(g, call.KindAllGatherObject, 1)
	o.Guard(func() { o.SetPayload(o.group.encode(in)) })
	encoded, err := o.AllGather(ctx)
	return decodeAll[T](o, encoded, err)
}

// GatherObject returns in of every rank, in order of rank, on rank dst, and nil elsewhere. See [BroadcastObjects] for
// how objects travel.
func GatherObject[T any](ctx context.Context, g *Group, in T, dst int) ([]T, error) {
	o := newObjects(g, call.KindGatherObject, 1)
	o.Guard(func() { o.SetPayload(o.group.encode(in)) })
	encoded, err := o.Gather(ctx, dst)
	return decodeAll[T](o, encoded, err)
}

// ScatterObject returns in[Rank] of rank src on every rank. On rank src len(in) is Size; on other ranks in does not
// matter. See [BroadcastObjects] for how objects travel.
func ScatterObject[T any](ctx context.Context, g *Group, in []T, src int) (T, error) {
	o := newObjects(g, call.KindScatterObject, 1)
	var payloads [][]byte
	var cause error
	if g.Rank() == src {
		if len(in) != g.Size() {
			o.Refuse(fmt.Errorf("len(in) is %d: want Size = %d", len(in), g.Size()))
		}
		o.Guard(func() { payloads, cause = encodeAll(o.group, in) })
	}
	var out T
	encoded, err := o.Scatter(ctx, payloads, cause, src)
	if err == nil {
		o.Guard(func() { err = o.About(src, o.group.decode(encoded, &out)) })
	}
	return out, public(err)
}

// objects is a call that moves objects.
type objects struct {
	*core.Objects
	group *Group
}

func newObjects(g *Group, kind call.Kind, count int) objects {
	g = g.orNone()
	return objects{core.NewObjects(g.core, kind, count, g.objectLimit), g}
}

// decodeAll decodes the objects of all ranks, if this rank has received them.
func decodeAll[T any](o objects, encoded [][]byte, err error) ([]T, error) {
	if err != nil || encoded == nil {
		return nil, public(err)
	}
	all := make([]T, len(encoded))
	for r, b := range encoded {
		var err error
		o.Guard(func() { err = o.group.decode(b, &all[r]) })
		if err != nil {
			return nil, public(o.About(r, err))
		}
	}
	return all, nil
}

// encodeAll encodes the objects for all ranks. If one of them cannot be encoded, it returns none.
func encodeAll[T any](g *Group, in []T) (payloads [][]byte, err error) {
	payloads = make([][]byte, len(in))
	for i, obj := range in {
		if payloads[i], err = g.encode(obj); err != nil {
			return nil, fmt.Errorf("number %d of %d %w", i+1, len(in), err)
		}
	}
	return payloads, nil
}

// The first byte of a message of objects says what follows.
const (
	objectsFollow = iota
	reasonFollows // why they could not be encoded
)

// SendObjects sends objs to rank dst of g, which receives them by RecvObjects. See [BroadcastObjects] for how objects
// travel. Their messages are in order with those of Send with tag 0. If a Recv matches a message of SendObjects, or a
// RecvObjects one of Send, it fails with a [MismatchError], and the message is lost.
func SendObjects(ctx context.Context, g *Group, objs []any, dst int) error {
	g = g.orNone()
	list, cause := g.encodeList(objs)
	message := append([]byte{objectsFollow}, list...)
	if cause != nil {
		message = append([]byte{reasonFollows}, core.Reason(cause)...)
	}
	var m core.PointToPoint
	m.Set(g.core, call.KindSendObjects, call.TypeObject, message, dst, nil)
	t, err := m.Run(ctx)
	if err == nil && cause != nil {
		err = t.About(g.core.Rank(), cause)
	}
	return public(err)
}

// RecvObjects receives the objects of a SendObjects of rank src of g (or AnySource) into what objs point to: every
// element is a pointer. If more than len(objs) objects come, it returns a [TruncateError]. If fewer come, it sets only
// the first Status.Count.
func RecvObjects(ctx context.Context, g *Group, objs []any, src int) (Status, error) {
	g = g.orNone()
	var m core.PointToPoint
	m.Set(g.core, call.KindRecvObjects, call.TypeObject, nil, src, nil)
	if err := wantPointers(objs); err != nil {
		m.Refuse(err)
	}
	m.Limit = g.objectLimit + 1
	t, err := m.Run(ctx)
	if err = public(err); err != nil {
		if long, ok := errors.AsType[*TruncateError](err); ok {
			err = public(t.About(g.GroupRank(long.Source), g.fits(long.Got)))
		}
		return Status{}, err
	}
	st, message := Status(t.Status()), t.Message()
	st.Count = 0
	if reason, ok := bytes.CutPrefix(message, []byte{reasonFollows}); ok {
		return st, public(t.About(st.Source, errors.New(string(reason))))
	}
	encoded, _ := bytes.CutPrefix(message, []byte{objectsFollow})
	list, err := openList(encoded)
	if list.count > len(objs) {
		return st, &TruncateError{Source: g.core.Ranks[st.Source], Got: list.count, Room: len(objs)}
	}
	if err == nil {
		st.Count, err = g.decodeList(list, objs)
	}
	return st, public(t.About(st.Source, err))
}
