package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AnySource and AnyTag match messages from every rank and with every tag.
const (
	AnySource = core.AnySource
	AnyTag    = core.AnyTag
)

// MaxTag is the largest tag; the smallest is 0.
const MaxTag = core.MaxTag

// Send sends buf to rank dst of g, with a tag (0 if you pass none). It returns when you may use buf again.
func Send[T Element](ctx context.Context, g *Group, buf []T, dst int, tag ...int) error {
	var m core.PointToPoint
	m.Set(g.untyped(), call.KindSend, typeOf[T](), reduce.Bytes(buf), dst, tag)
	_, err := m.Do(ctx)
	return public(err)
}

// Recv receives a message of at most len(buf) elements from rank src of g (or AnySource), with a tag (or AnyTag; 0 if
// you pass none). If the message is longer, it returns a [TruncateError]. If it is shorter, it sets only the first
// Status.Count elements.
func Recv[T Element](ctx context.Context, g *Group, buf []T, src int, tag ...int) (Status, error) {
	var m core.PointToPoint
	m.Set(g.untyped(), call.KindRecv, typeOf[T](), reduce.Bytes(buf), src, tag)
	st, err := m.Do(ctx)
	return Status(st), public(err)
}

func newPointToPoint[T Element](g *Group, kind call.Kind, buf []T, peer int, tag []int) (m core.PointToPoint) {
	m.Set(g.untyped(), kind, typeOf[T](), reduce.Bytes(buf), peer, tag)
	return m
}

// ISend starts a Send and returns at once.
func ISend[T Element](g *Group, buf []T, dst int, tag ...int) *Work {
	return startPointToPoint(newPointToPoint(g, call.KindSend, buf, dst, tag))
}

// IRecv starts a Recv and returns at once.
func IRecv[T Element](g *Group, buf []T, src int, tag ...int) *Work {
	return startPointToPoint(newPointToPoint(g, call.KindRecv, buf, src, tag))
}

// A P2POp is a send or receive that [Batch] will start.
type P2POp struct{ call core.PointToPoint }

// SendOp describes a Send for [Batch].
func SendOp[T Element](g *Group, buf []T, dst int, tag ...int) P2POp {
	return P2POp{newPointToPoint(g, call.KindSend, buf, dst, tag)}
}

// RecvOp describes a Recv for [Batch].
func RecvOp[T Element](g *Group, buf []T, src int, tag ...int) P2POp {
	return P2POp{newPointToPoint(g, call.KindRecv, buf, src, tag)}
}

// Batch starts all operations, receives first, and returns their Work in the order of ops. Sends and receives in a
// batch cannot deadlock, whatever their order.
func Batch(ops ...P2POp) []*Work {
	works := make([]*Work, len(ops))
	for _, kind := range []call.Kind{call.KindRecv, call.KindSend} {
		for i, op := range ops {
			if op.call.Kind == kind {
				works[i] = startPointToPoint(op.call)
			}
		}
	}
	for i, op := range ops {
		if op.call.Kind == 0 {
			works[i] = &Work{of: core.NotStarted(badArgument("Batch", "number %d of %d has not been made by SendOp or RecvOp", i+1, len(ops)))}
		}
	}
	return works
}

// Probe waits for a message from rank src of g (or AnySource), with a tag (or AnyTag; 0 if you pass none), that no
// receive has matched. It returns what a Recv would return: source, tag and length, so that you can choose a buffer.
// The message is still to be received. If several goroutines receive, another one may receive it first.
func Probe(ctx context.Context, g *Group, src int, tag ...int) (Status, error) {
	m := newPointToPoint(g, call.KindProbe, []byte(nil), src, tag)
	t, err := m.Run(ctx)
	if err != nil {
		return Status{}, public(err)
	}
	return Status(t.Probed()), nil
}

// TryProbe is Probe without waiting. found reports whether there is a message.
func TryProbe(g *Group, src int, tag ...int) (st Status, found bool, err error) {
	m := newPointToPoint(g, call.KindProbe, []byte(nil), src, tag)
	s, found, err := m.Try()
	return Status(s), found, public(err)
}
