package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/transport"
)

// A Place is a rank's in a world.
type Place struct {
	World uint64
	Rank  int
	Ranks int // how many there are
	Here  int // how many of them are on this machine
}

// A callee is whom a desk takes calls for.
type callee struct {
	Place
	handler transport.Handler
	ctx     context.Context // ends when it takes no more
	stop    context.CancelFunc
	calls   sync.WaitGroup // into handler
}

// A call for a stream that is wanted.
type call struct {
	*callee
	from    int
	segment *Segment
}

// Serve makes the desk take calls for p's streams, for h, until Leave. Callers that have come before have waited for it.
func (d *Desk) Serve(p Place, h transport.Handler) {
	c := &callee{Place: p, handler: h}
	c.ctx, c.stop = context.WithCancel(d.ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callee = c
	close(d.taken)
}

// Leave ends Serve. No call into the handler is running when it returns.
func (d *Desk) Leave() {
	d.mu.Lock()
	c := d.callee
	d.callee = nil
	d.mu.Unlock()
	if c != nil {
		c.stop()
		c.calls.Wait()
	}
}

// called is whom a call that begins is for. It waits until there is somebody; calls.Done is to follow.
func (d *Desk) called() (*callee, error) {
	select {
	case <-d.taken:
	case <-d.ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.callee == nil {
		return nil, errors.New("takes no calls any more")
	}
	d.callee.calls.Add(1)
	return d.callee, nil
}

// streamName is what the memory of a stream is called in /proc.
const streamName = "gorun-stream"

// take decides on the call of a rank that has proven itself. There is none to connect if it is not wanted.
func (d *Desk) take(conn *net.UnixConn, hello []byte) (*call, []byte, error) {
	_ = conn.SetDeadline(time.Time{}) // this rank may still be on its way
	e, err := d.called()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	from, err := e.checkHello(hello)
	if err == nil {
		err = joinFences()
	}
	var segment *Segment
	if err == nil {
		segment, err = create(streamName, streamSize(ringSize(e.Here)))
	}
	if err == nil && e.ctx.Err() == nil && e.handler.Admit(from) {
		return &call{e, from, segment}, replyWelcome, nil
	}
	e.calls.Done()
	return nil, replyCrossed, errors.Join(err, segment.Close())
}

// connect hands the stream to both ends, unless err has come between.
func (c *call) connect(conn *net.UnixConn, err error) error {
	defer c.calls.Done()
	defer context.AfterFunc(c.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err == nil {
		err = hand(conn, c.segment)
	}
	if err != nil {
		c.handler.Connected(c.from, nil)
		return errors.Join(err, c.segment.Close())
	}
	stream, err := newConn(c.segment, conn, true)
	if err != nil {
		c.handler.Connected(c.from, nil)
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it has not got it
		c.handler.Connected(c.from, nil)
		return errors.Join(err, stream.Close())
	}
	c.handler.Connected(c.from, stream)
	return nil
}

var (
	replyWelcome = []byte("welcome")
	replyCrossed = []byte("crossed")
)

// helloSize is the bytes of a call's hello: the world, who calls, who is called.
const helloSize = 16

func (p Place) hello(to int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, p.World)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Rank))
	return binary.LittleEndian.AppendUint32(b, uint32(to))
}

func (p Place) checkHello(b []byte) (from int, err error) {
	from, to := int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint32(b[12:]))
	switch {
	case binary.LittleEndian.Uint64(b) != p.World:
		return 0, errors.New("belongs to another world (an earlier round, or another job)")
	case to != p.Rank:
		return 0, fmt.Errorf("looks for rank %d, this is rank %d", to, p.Rank)
	case from >= p.Ranks || from == p.Rank:
		return 0, fmt.Errorf("calls itself rank %d of %d", from, p.Ranks)
	}
	return from, nil
}

// Call opens a stream from p to the rank whose desk is at address. It fails with transport.ErrCrossed if that does so itself.
func (p Place) Call(ctx context.Context, address string, token []byte, to int) (net.Conn, error) {
	if err := joinFences(); err != nil {
		return nil, err
	}
	socket, reply, err := ask(ctx, address, token, p.hello(to))
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })()
	defer func() { _ = socket.Close() }()
	if string(reply) == string(replyCrossed) {
		return nil, transport.ErrCrossed
	}
	segment, err := receive(socket)
	if err != nil {
		return nil, err
	}
	stream, err := newConn(segment, socket, false)
	if err != nil {
		return nil, err
	}
	if _, err := socket.Write(make([]byte, 1)); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return stream, nil
}
