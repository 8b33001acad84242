package comm

import (
	"bytes"
	"context"
	"errors"
)

// The first byte of a message of objects says what follows.
const (
	objectsFollow = iota
	reasonFollows // why they could not be encoded
)

// SendObjects sends objs to rank dst of g, where a RecvObjects takes them. See [BroadcastObjects] for how objects travel.
// They keep their order with messages of Send with tag 0; a Recv or RecvObjects whose turn it is to take what was meant for
// the other fails with a [MismatchError], and the message is lost.
func SendObjects(ctx context.Context, g *Group, objs []any, dst int) error {
	if err := someGroup("SendObjects", g); err != nil {
		return err
	}
	list, cause := g.encodeList(objs)
	message := append([]byte{objectsFollow}, list...)
	if cause != nil {
		reason := []byte(cause.Error())
		message = append([]byte{reasonFollows}, reason[:min(len(reason), maxReason)]...)
	}
	op := newP2P(g, callSendObjects, message, dst, nil)
	op.typ = typeObject
	op.mustBeOne()
	t, err := op.run(ctx)
	if err == nil && cause != nil {
		err = t.about(g.rank, cause)
	}
	return err
}

// RecvObjects receives the objects of a SendObjects of rank src of g (or AnySource) into what objs point to: every element
// is a pointer. More objects than len(objs) are a [TruncateError], fewer set only Status.Count of them.
func RecvObjects(ctx context.Context, g *Group, objs []any, src int) (Status, error) {
	if err := someGroup("RecvObjects", g); err != nil {
		return Status{}, err
	}
	op := newP2P[byte](g, callRecvObjects, nil, src, nil)
	op.typ = typeObject
	op.mayBeAny()
	if err := wantPointers(objs); err != nil && op.err == nil {
		op.err = &ArgumentError{Op: op.kind.String(), Err: err}
	}
	op.limit = g.objectLimit + 1
	t, err := op.run(ctx)
	if err != nil {
		var long *TruncateError
		if errors.As(err, &long) {
			err = t.about(g.GroupRank(long.Source), g.fits(long.Got))
		}
		return Status{}, err
	}
	st, message := t.status(), t.op.Message()
	st.Count = 0
	if reason, ok := bytes.CutPrefix(message, []byte{reasonFollows}); ok {
		return st, t.about(st.Source, errors.New(string(reason)))
	}
	encoded, _ := bytes.CutPrefix(message, []byte{objectsFollow})
	list, err := openList(encoded)
	if list.count > len(objs) {
		return st, &TruncateError{Source: g.ranks[st.Source], Got: list.count, Room: len(objs)}
	}
	if err == nil {
		st.Count, err = g.decodeList(list, objs)
	}
	return st, t.about(st.Source, err)
}

// about is err, if there is one, as an error about the objects of rank.
func (t *transfer) about(rank int, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{Rank: t.g.ranks[rank], Op: t.kind.String(), Seq: t.op.Number(), Err: err}
}
