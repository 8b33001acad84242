package comm

import (
	"context"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AnySource and AnyTag match messages from every rank and with every tag.
const (
	AnySource = endpoint.AnySource
	AnyTag    = endpoint.AnyTag
)

// MaxTag is the largest tag; the smallest is 0.
const MaxTag = math.MaxInt32

// Send sends buf to rank dst of g, with tag (0 unless given), and returns when buf may be used again.
func Send[T Element](ctx context.Context, g *Group, buf []T, dst int, tag ...int) error {
	if t, ok := shortCut(ctx, g, dst, tag); ok && g.lane.SendNow(g.ranks[dst], t, p2pCall(callSend, typeOf[T]()), reduce.Bytes(buf)) {
		return nil
	}
	_, err := sendOp(g, buf, dst, tag).do(ctx)
	return err
}

// Recv receives a message of at most len(buf) elements from rank src of g (or AnySource) with tag (0 unless given;
// or AnyTag). A longer message is a [TruncateError], a shorter one sets only Status.Count elements.
func Recv[T Element](ctx context.Context, g *Group, buf []T, src int, tag ...int) (Status, error) {
	if t, ok := shortCut(ctx, g, src, tag); ok {
		call, b := p2pCall(callRecv, typeOf[T]()), reduce.Bytes(buf)
		if n, ok := g.lane.RecvNow(g.ranks[src], t, call, b); ok {
			var e T
			return Status{Source: src, Tag: t, Count: n / int(unsafe.Sizeof(e))}, nil
		}
	}
	return recvOp(g, buf, src, tag).do(ctx)
}

// shortCut says whether a blocking call may try to be over at once, and its tag: nothing is wrong with it, as far as can be seen
// without much ado.
func shortCut(ctx context.Context, g *Group, peer int, tag []int) (t int, ok bool) {
	if len(tag) == 1 {
		t = tag[0]
	}
	return t, g != nil && len(tag) <= 1 && uint(t) <= MaxTag && uint(peer) < uint(len(g.ranks)) && ctx.Err() == nil
}

func p2pCall(kind callKind, typ reduce.Type) endpoint.Call {
	return endpoint.Call{Op: uint8(kind), Type: uint8(typ)}
}

// ISend starts a Send and returns at once.
func ISend[T Element](g *Group, buf []T, dst int, tag ...int) *Work {
	return sendOp(g, buf, dst, tag).work()
}

// IRecv starts a Recv and returns at once.
func IRecv[T Element](g *Group, buf []T, src int, tag ...int) *Work {
	return recvOp(g, buf, src, tag).work()
}

// A P2POp is a send or receive that [Batch] will start.
type P2POp struct {
	g     *Group
	kind  callKind
	peer  int
	tag   int
	buf   []byte
	limit int // of RecvObjects: how long the message may be
	elem  int
	typ   reduce.Type
	err   error
}

// SendOp describes a Send for [Batch].
func SendOp[T Element](g *Group, buf []T, dst int, tag ...int) P2POp { return sendOp(g, buf, dst, tag) }

// RecvOp describes a Recv for [Batch].
func RecvOp[T Element](g *Group, buf []T, src int, tag ...int) P2POp { return recvOp(g, buf, src, tag) }

// Batch starts all operations, receives first, and returns their Work in the order of ops. No order of sends and
// receives in a batch can deadlock.
func Batch(ops ...P2POp) []*Work {
	works := make([]*Work, len(ops))
	for _, kind := range []callKind{callRecv, callSend} {
		for i, op := range ops {
			if op.kind == kind {
				works[i] = op.work()
			}
		}
	}
	for i, op := range ops {
		if op.kind == 0 {
			t := &transfer{err: badArgument("Batch", "number %d of %d has not been made by SendOp or RecvOp", i+1, len(ops))}
			t.work.of = t
			works[i] = &t.work
		}
	}
	return works
}

func sendOp[T Element](g *Group, buf []T, dst int, tag []int) P2POp {
	op := newP2P(g, callSend, buf, dst, tag)
	op.mustBeOne()
	return op
}

// mustBeOne checks destination and tag of a send.
func (o *P2POp) mustBeOne() {
	switch {
	case o.err != nil:
	case o.g.WorldRank(o.peer) < 0:
		o.err = badArgument(o.kind.String(), "no rank %d in a group of %d", o.peer, o.g.Size())
	case o.tag < 0:
		o.err = badArgument(o.kind.String(), "tag %d: want 0 to %d", o.tag, MaxTag)
	}
}

func recvOp[T Element](g *Group, buf []T, src int, tag []int) P2POp {
	op := newP2P(g, callRecv, buf, src, tag)
	op.mayBeAny()
	return op
}

// mayBeAny checks source and tag of a receive.
func (o *P2POp) mayBeAny() {
	switch {
	case o.err != nil:
	case o.peer != AnySource && o.g.WorldRank(o.peer) < 0:
		o.err = badArgument(o.kind.String(), "no rank %d in a group of %d", o.peer, o.g.Size())
	case o.tag < 0 && o.tag != AnyTag:
		o.err = badArgument(o.kind.String(), "tag %d: want 0 to %d, or AnyTag", o.tag, MaxTag)
	}
}

func newP2P[T Element](g *Group, kind callKind, buf []T, peer int, tag []int) P2POp {
	var e T
	op := P2POp{g: g, kind: kind, peer: peer, buf: reduce.Bytes(buf), elem: int(unsafe.Sizeof(e)), typ: typeOf[T]()}
	switch {
	case g == nil:
		op.g, op.err = nobody, someGroup(kind.String(), g)
	case len(tag) > 1:
		op.err = badArgument(kind.String(), "%d tags given: want one at most", len(tag))
	case len(tag) == 1 && tag[0] > MaxTag:
		op.err = badArgument(kind.String(), "tag %d: want 0 to %d", tag[0], MaxTag)
	case len(tag) == 1:
		op.tag = tag[0]
	}
	return op
}

// run starts the operation, unless ctx has ended, and waits for it.
func (o P2POp) run(ctx context.Context) (*transfer, error) {
	o.checkTime(ctx)
	t := o.start()
	return t, t.wait(ctx)
}

// do is run for whoever asks for no more than the status: it leaves no memory behind.
func (o P2POp) do(ctx context.Context) (Status, error) {
	o.checkTime(ctx)
	var t transfer
	o.begin(&t)
	err := t.wait(ctx)
	st := t.status()
	if t.op != nil {
		t.op.Free()
	}
	return st, err
}

// checkTime checks that ctx has not ended.
func (o *P2POp) checkTime(ctx context.Context) {
	if err := ctx.Err(); err != nil && o.err == nil {
		o.err = fmt.Errorf("comm: %v: %w", o.kind, err)
	}
}

// work starts the operation as something to wait for later.
func (o P2POp) work() *Work {
	t := o.start()
	t.begun = time.Now()
	return &t.work
}

// start starts the operation.
func (o P2POp) start() *transfer {
	t := &transfer{}
	o.begin(t)
	t.work.of = t
	return t
}

// begin makes t the operation, under way.
func (o P2POp) begin(t *transfer) {
	t.g, t.kind, t.elem, t.err = o.g, o.kind, o.elem, o.err
	if o.err != nil {
		_ = o.g.refused(o.err)
		return
	}
	peer := o.peer
	if peer != AnySource {
		peer = o.g.ranks[peer]
	}
	call := p2pCall(o.kind, o.typ)
	switch o.kind {
	case callSend, callSendObjects:
		t.op = o.g.lane.Send(peer, o.tag, 0, call, o.buf)
	case callRecvObjects:
		t.op = o.g.lane.RecvNew(peer, o.tag, call, o.limit)
	case callProbe:
		t.op = o.g.lane.Probe(peer, o.tag, call)
	default:
		t.op = o.g.lane.Recv(peer, o.tag, 0, call, o.buf)
	}
}
