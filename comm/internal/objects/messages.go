package objects

import (
	"bytes"
	"context"
	"errors"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/matching"
)

// The first byte of a message of objects says what follows.
const (
	objectsFollow = iota
	reasonFollows // why they could not be encoded
)

// Send sends objs to rank dst. If they cannot be encoded, it sends the reason.
func (g Group) Send(ctx context.Context, objs []any, dst int) error {
	list, cause := g.encodeList(objs)
	message := append([]byte{objectsFollow}, list...)
	if cause != nil {
		message = append([]byte{reasonFollows}, core.Reason(cause)...)
	}
	var m core.PointToPoint
	m.Set(g.Group, call.KindSendObjects, call.TypeObject, message, dst, nil)
	t, err := m.Run(ctx)
	if err == nil && cause != nil {
		err = t.About(g.Rank(), cause)
	}
	return err
}

// Recv receives the objects of a Send of rank src into what objs point to.
func (g Group) Recv(ctx context.Context, objs []any, src int) (core.Status, error) {
	var m core.PointToPoint
	m.Set(g.Group, call.KindRecvObjects, call.TypeObject, nil, src, nil)
	if err := wantPointers(objs); err != nil {
		m.Refuse(err)
	}
	m.Limit = g.limit() + 1
	t, err := m.Run(ctx)
	if err != nil {
		if long, ok := errors.AsType[*matching.TruncateError](err); ok {
			err = t.About(g.GroupRank(long.Source), g.fits(long.Got))
		}
		return core.Status{}, err
	}
	st, message := t.Status(), t.Message()
	st.Count = 0
	if reason, ok := bytes.CutPrefix(message, []byte{reasonFollows}); ok {
		return st, t.About(st.Source, errors.New(string(reason)))
	}
	encoded, _ := bytes.CutPrefix(message, []byte{objectsFollow})
	l, err := openList(encoded)
	if l.count > len(objs) {
		return st, t.TooMany(l.count, len(objs))
	}
	if err == nil {
		st.Count, err = g.decodeList(l, objs)
	}
	return st, t.About(st.Source, err)
}
