package core

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AnySource and AnyTag match messages from every rank and with every tag.
const (
	AnySource = matching.AnySource
	AnyTag    = matching.AnyTag
)

// MaxTag is the largest tag; the smallest is 0.
const MaxTag = math.MaxInt32

// Status says what a receive got.
type Status struct {
	Source int // the sender's rank in the group
	Tag    int
	Count  int // elements received
}

// A PointToPoint is a send, a receive or a probe that has not begun: its arguments, which have been checked.
type PointToPoint struct {
	g     *Group
	Kind  call.Kind
	peer  int
	tag   int
	buf   []byte
	Limit int // of RecvObjects: how long the message may be, in bytes
	elem  int
	typ   reduce.Type
	err   error
}

// Set makes m, which is zero, a call of kind on elements of type t in buf, with rank peer of g and tag, which is 0
// unless given.
func (m *PointToPoint) Set(g *Group, kind call.Kind, t reduce.Type, buf []byte, peer int, tag []int) {
	m.g, m.Kind, m.peer, m.buf, m.elem, m.typ = g, kind, peer, buf, max(t.Size(), 1), t
	if len(tag) > 0 {
		m.tag = tag[0]
	}
	switch isSend := kind == call.KindSend || kind == call.KindSendObjects; {
	case g == NoGroup:
		m.Refuse(ErrNoGroup)
	case len(tag) > 1:
		m.Refuse(fmt.Errorf("%d tags given: want one at most", len(tag)))
	case m.tag > MaxTag || isSend && m.tag < 0:
		m.Refuse(fmt.Errorf("tag %d: want 0 to %d", m.tag, MaxTag))
	case m.tag < 0 && m.tag != AnyTag:
		m.Refuse(fmt.Errorf("tag %d: want 0 to %d, or AnyTag", m.tag, MaxTag))
	case (isSend || peer != AnySource) && !g.Has(peer):
		m.Refuse(noRank(g, peer))
	case g.World.CheckBuffers:
		if err := m.touch(); err != nil {
			m.Refuse(err)
		}
	}
}

// Refuse records what is wrong with the call; the first reason stays.
func (m *PointToPoint) Refuse(err error) {
	if m.err == nil {
		m.err = badArgument(m.Kind, err)
	}
}

func messageCall(kind call.Kind, t reduce.Type) call.Call {
	return call.Call{Kind: kind, Type: uint8(t)}
}

// A Transfer is a send, a receive or a probe under way.
type Transfer struct {
	g    *Group
	op   *endpoint.Op
	kind call.Kind
	elem int
	err  error // of a call that was wrong in itself; op is then nil

	begun   time.Time // set by Start
	watched sync.Once
}

// Run starts the call, unless ctx has ended, and waits for it.
func (m *PointToPoint) Run(ctx context.Context) (*Transfer, error) {
	t := new(Transfer)
	m.checkTime(ctx)
	m.begin(t)
	return t, t.Wait(ctx)
}

// Do is Run for callers who need nothing but the status. It allocates nothing.
func (m *PointToPoint) Do(ctx context.Context) (Status, error) {
	m.checkTime(ctx)
	if n, ok := m.now(); ok {
		return Status{Source: m.peer, Tag: m.tag, Count: n / m.elem}, nil
	}
	var t Transfer
	m.begin(&t)
	err := t.Wait(ctx)
	st := t.Status()
	if t.op != nil {
		t.op.Free()
	}
	return st, err
}

// now carries out a send or receive of a short message, if that can end at once. Otherwise it returns false and does
// nothing. n is the bytes received.
func (m *PointToPoint) now() (n int, ok bool) {
	switch {
	case m.err != nil:
	case m.Kind == call.KindSend:
		return 0, m.g.Comm.SendNow(m.g.Ranks[m.peer], m.tag, call.Pack(m.Kind, uint8(m.typ), 0, 0), m.buf)
	case m.Kind == call.KindRecv && m.peer != AnySource && m.tag != AnyTag:
		return m.g.Comm.RecvNow(m.g.Ranks[m.peer], m.tag, call.Pack(m.Kind, uint8(m.typ), 0, 0), m.buf)
	}
	return 0, false
}

// Start begins the call as t. Its timeout begins now, not with the call of Wait.
func (m *PointToPoint) Start(t *Transfer) {
	m.begin(t)
	t.begun = time.Now()
	if t.op != nil {
		t.op.Start()
	}
}

// checkTime refuses the call if ctx has ended.
func (m *PointToPoint) checkTime(ctx context.Context) {
	if err := ctx.Err(); err != nil && m.err == nil {
		m.err = fmt.Errorf("comm: %v: %w", m.Kind, err)
	}
}

func (m *PointToPoint) begin(t *Transfer) {
	t.g, t.kind, t.elem, t.err = m.g, m.Kind, m.elem, m.err
	if m.err != nil {
		_ = m.g.Refused(m.err)
		return
	}
	peer := m.peer
	if peer != AnySource {
		peer = m.g.Ranks[peer]
	}
	c := messageCall(m.Kind, m.typ)
	switch m.Kind {
	case call.KindSend, call.KindSendObjects:
		t.op = m.g.Comm.Send(peer, m.tag, 0, c, m.buf)
	case call.KindRecvObjects:
		t.op = m.g.Comm.RecvNew(peer, m.tag, c, m.Limit)
	case call.KindProbe:
		t.op = m.g.Comm.Probe(peer, m.tag, c)
	default:
		t.op = m.g.Comm.Recv(peer, m.tag, 0, c, m.buf)
	}
}

// Try starts m, a probe, and returns whether there is a message.
func (m *PointToPoint) Try() (st Status, found bool, err error) {
	t := new(Transfer)
	m.begin(t)
	if t.op != nil && t.op.Withdraw() {
		return Status{}, false, nil
	}
	if err := t.Result(); err != nil {
		return Status{}, false, err
	}
	return t.Probed(), true, nil
}

// DiagnosisTimeout is how much longer Wait may take, once a transfer has timed out, to find the rank at fault.
const DiagnosisTimeout = time.Second

// remaining returns how long Wait may still wait for t.
func (t *Transfer) remaining() time.Duration {
	limit := t.g.Timeout
	if t.begun.IsZero() {
		return limit
	}
	return max(limit-time.Since(t.begun), min(limit/4, DiagnosisTimeout))
}

// Wait waits until t has ended and returns its error.
func (t *Transfer) Wait(ctx context.Context) error {
	if t.op == nil {
		return t.err
	}
	defer t.g.bind()()
	if !t.op.Poll() {
		_ = t.op.Sleep(t.g.polled(ctx), t.remaining())
	}
	return t.ended()
}

// ended returns the error of t, which has ended.
func (t *Transfer) ended() error {
	err := t.op.Err()
	if err != nil {
		t.g.OnFailure(err)
		t.g.Comm.AwaitNotified(NotifyTimeout)
	}
	return t.failed(err)
}

// watch waits until t has ended, in a goroutine of the group's.
func (t *Transfer) watch() {
	_ = t.op.Wait(context.Background(), t.remaining())
	_ = t.ended() // Result returns it again
}

// Await waits until t has ended, and returns nil, or until ctx has. That does not end t.
func (t *Transfer) Await(ctx context.Context) error {
	if t.op == nil || t.op.Poll() {
		return nil
	}
	return endpoint.Await(t.g.polled(ctx), t.Done())
}

// Done returns a channel that is closed when t has ended. From the first call on the group waits for t, so that t also
// times out if the caller does not call Wait.
func (t *Transfer) Done() <-chan struct{} {
	if t.op == nil {
		return alreadyDone
	}
	select {
	case <-t.op.Done():
	default:
		t.watched.Do(func() { t.g.Comm.Go(t.watch) })
	}
	return t.op.Done()
}

// Result is t's error, once it has ended.
func (t *Transfer) Result() error {
	if t.op == nil {
		return t.err
	}
	return t.failed(t.op.Err())
}

// Status returns what t, a receive, has received.
func (t *Transfer) Status() Status {
	if t.op == nil || t.kind == call.KindSend || t.op.Err() != nil {
		return Status{}
	}
	source, tag, bytes := t.op.Received()
	return Status{Source: t.g.GroupRank(source), Tag: tag, Count: bytes / t.elem}
}

// Probed returns the status of t, a probe that has found a message. It counts elements of the sender's type.
func (t *Transfer) Probed() Status {
	t.elem = reduce.Type(t.op.Type()).Size()
	return t.Status()
}

// Message returns the message that t, a RecvObjects, has received.
func (t *Transfer) Message() []byte { return t.op.Message() }

// TooMany returns the error of t, a RecvObjects into fewer objects than it has received.
func (t *Transfer) TooMany(objects, room int) error {
	source, _, _ := t.op.Received()
	return t.failed(&matching.TruncateError{Source: source, Got: objects, Room: room})
}

// About returns err as an error about the objects of rank, or nil if err is nil.
func (t *Transfer) About(rank int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: BadObject, Rank: t.g.Ranks[rank], Op: t.kind.String(), Seq: t.op.Number(), Err: err}
}

func (t *Transfer) failed(err error) error {
	if err == nil {
		return nil
	}
	err = &Error{Group: t.g, Op: t.kind.String(), Seq: t.op.Number(), Elem: t.elem, Err: err}
	t.g.noteMismatch(err)
	return err
}
