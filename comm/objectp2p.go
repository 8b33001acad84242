package comm

import (
	"bytes"
	"context"
	"errors"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
)

// The first byte of a message of objects says what follows.
const (
	objectsFollow = iota
	reasonFollows // why they could not be encoded
)

// SendObjects sends objs to rank dst of g, which receives them by RecvObjects. See [BroadcastObjects] for how objects travel. Their messages
// are in order with those of Send with tag 0. If a Recv matches a message of SendObjects, or a RecvObjects one of Send, it fails with a
// [MismatchError], and the message is lost.
func SendObjects(ctx context.Context, g *Group, objs []any, dst int) error {
	if err := checkGroup("SendObjects", g); err != nil {
		return err
	}
	list, cause := g.encodeList(objs)
	message := append([]byte{objectsFollow}, list...)
	if cause != nil {
		reason := []byte(cause.Error())
		message = append([]byte{reasonFollows}, reason[:min(len(reason), core.MaxReason)]...)
	}
	t, err := core.NewMessage(g.core, call.KindSendObjects, call.TypeObject, message, dst, nil).Run(ctx)
	if err == nil && cause != nil {
		err = t.About(g.core.Rank(), cause)
	}
	return public(err)
}

// RecvObjects receives the objects of a SendObjects of rank src of g (or AnySource) into what objs point to: every element is a pointer. If
// more than len(objs) objects come, it returns a [TruncateError]. If fewer come, it sets only the first Status.Count.
func RecvObjects(ctx context.Context, g *Group, objs []any, src int) (Status, error) {
	if err := checkGroup("RecvObjects", g); err != nil {
		return Status{}, err
	}
	m := core.NewMessage(g.core, call.KindRecvObjects, call.TypeObject, nil, src, nil)
	if err := wantPointers(objs); err != nil {
		m.Refuse(err)
	}
	m.Limit(g.objectLimit + 1)
	t, err := m.Run(ctx)
	if err = public(err); err != nil {
		var long *TruncateError
		if errors.As(err, &long) {
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
