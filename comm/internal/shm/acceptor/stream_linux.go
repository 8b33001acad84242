package acceptor

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/shm/stream"
	"github.com/gorun/gorun/comm/internal/transport"
)

// A server accepts streams for a rank.
type server struct {
	Self
	handler transport.Handler
	ctx     context.Context // ends when it accepts no more
	stop    context.CancelFunc
	pending sync.WaitGroup // requests, which call the handler
}

// A request is a stream that another rank opens and that this rank wants.
type request struct {
	*server
	from   int
	memory *segment.Segment
}

// Serve accepts streams to self, for h, until StopServing. Ranks that call before that wait for it.
func (a *Acceptor) Serve(self Self, h transport.Handler) {
	s := &server{Self: self, handler: h}
	s.ctx, s.stop = context.WithCancel(a.ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = s
	close(a.served)
}

// StopServing ends Serve. No call into the handler is running when it returns.
func (a *Acceptor) StopServing() {
	a.mu.Lock()
	s := a.server
	a.server = nil
	a.mu.Unlock()
	if s != nil {
		s.stop()
		s.pending.Wait()
	}
}

// request decides whether this rank wants the stream that another rank opens. It returns no request if it does not.
func (a *Acceptor) request(conn *net.UnixConn, hello []byte) (*request, []byte, error) {
	_ = conn.SetDeadline(time.Time{}) // this rank may not have joined its world yet
	select {
	case <-a.served:
	case <-a.ctx.Done():
	}
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	a.mu.Lock()
	s := a.server
	if s != nil {
		s.pending.Add(1)
	}
	a.mu.Unlock()
	if s == nil {
		return nil, nil, errors.New("takes no calls any more")
	}
	h, err := transport.ParseHello(hello, s.World, s.Rank, s.Ranks)
	from := int(h.From)
	if err == nil {
		err = stream.RegisterFences()
	}
	var memory *segment.Segment
	if err == nil {
		memory, err = stream.Create(s.Here)
	}
	if err == nil && s.ctx.Err() == nil && s.handler.Admit(from) {
		return &request{s, from, memory}, transport.ReplyWelcome, nil
	}
	s.pending.Done()
	return nil, transport.ReplyCrossed, errors.Join(err, memory.Close())
}

// connect gives both ranks their ends of the stream, if the handshake has ended without err.
func (r *request) connect(conn *net.UnixConn, err error) error {
	defer r.pending.Done()
	defer context.AfterFunc(r.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	end, err := r.open(conn, err)
	r.handler.Connected(r.from, end)
	return err
}

// open returns this rank's end of the stream, once the other rank has its own.
func (r *request) open(conn *net.UnixConn, err error) (net.Conn, error) {
	if err == nil {
		err = sendSegment(conn, r.memory)
	}
	if err != nil {
		return nil, errors.Join(err, r.memory.Close())
	}
	end, err := stream.New(r.memory, conn, true)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the other rank did not get its end
		return nil, errors.Join(err, end.Close())
	}
	return end, nil
}

// Dial opens a stream from this rank to rank to, whose acceptor is at address. It fails with transport.ErrCrossed if that rank is
// opening a stream to this one.
func (s Self) Dial(ctx context.Context, address string, token []byte, to int) (net.Conn, error) {
	if err := stream.RegisterFences(); err != nil {
		return nil, err
	}
	hello := transport.Hello{World: s.World, From: uint32(s.Rank), To: uint32(to)}
	socket, reply, err := dial(ctx, address, token, hello.Bytes())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })()
	defer func() { _ = socket.Close() }()
	if string(reply) == string(transport.ReplyCrossed) {
		return nil, transport.ErrCrossed
	}
	memory, err := receiveSegment(socket)
	if err != nil {
		return nil, err
	}
	end, err := stream.New(memory, socket, false)
	if err != nil {
		return nil, err
	}
	if _, err := socket.Write(make([]byte, 1)); err != nil {
		return nil, errors.Join(err, end.Close())
	}
	return end, nil
}
