package acceptor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/shm/stream"
	"github.com/gorun/gorun/comm/transport"
)

// A Place is the place of a rank in a world.
type Place struct {
	World uint64
	Rank  int
	Ranks int // how many there are
	Here  int // how many of them are on this machine
}

// A server is the rank for which an acceptor accepts streams.
type server struct {
	Place
	handler transport.Handler
	ctx     context.Context // ends when it accepts no more
	stop    context.CancelFunc
	pending sync.WaitGroup // requests, which call the handler
}

// A request is a stream that another rank dials and that this one wants.
type request struct {
	*server
	from   int
	memory *segment.Segment
}

// Serve accepts p's streams, for h, until StopServing. Earlier callers have waited for it.
func (a *Acceptor) Serve(p Place, h transport.Handler) {
	s := &server{Place: p, handler: h}
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

// begin returns the server for a new request. It waits until there is one. The caller must call pending.Done.
func (a *Acceptor) begin() (*server, error) {
	select {
	case <-a.served:
	case <-a.ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == nil {
		return nil, errors.New("takes no calls any more")
	}
	a.server.pending.Add(1)
	return a.server, nil
}

// request decides whether this rank wants the stream that another one dials. It returns no request if not.
func (a *Acceptor) request(conn *net.UnixConn, hello []byte) (*request, []byte, error) {
	_ = conn.SetDeadline(time.Time{}) // this rank may still be on its way
	s, err := a.begin()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	from, err := s.checkHello(hello)
	if err == nil {
		err = stream.RegisterFences()
	}
	var memory *segment.Segment
	if err == nil {
		memory, err = stream.Create(s.Here)
	}
	if err == nil && s.ctx.Err() == nil && s.handler.Admit(from) {
		return &request{s, from, memory}, replyWelcome, nil
	}
	s.pending.Done()
	return nil, replyCrossed, errors.Join(err, memory.Close())
}

// connect gives both ranks their ends of the stream, unless err has happened meanwhile.
func (r *request) connect(conn *net.UnixConn, err error) error {
	defer r.pending.Done()
	defer context.AfterFunc(r.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err == nil {
		err = sendSegment(conn, r.memory)
	}
	if err != nil {
		r.handler.Connected(r.from, nil)
		return errors.Join(err, r.memory.Close())
	}
	end, err := stream.New(r.memory, conn, true)
	if err != nil {
		r.handler.Connected(r.from, nil)
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the other rank has not got its end
		r.handler.Connected(r.from, nil)
		return errors.Join(err, end.Close())
	}
	r.handler.Connected(r.from, end)
	return nil
}

var (
	replyWelcome = []byte("welcome")
	replyCrossed = []byte("crossed")
)

// helloSize is the bytes of the hello of a rank that dials: the world, its rank, and the rank that it dials.
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

// Dial opens a stream from p to the rank whose acceptor is at address. It fails with transport.ErrCrossed if that rank
// is opening a stream to p itself.
func (p Place) Dial(ctx context.Context, address string, token []byte, to int) (net.Conn, error) {
	if err := stream.RegisterFences(); err != nil {
		return nil, err
	}
	socket, reply, err := dial(ctx, address, token, p.hello(to))
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })()
	defer func() { _ = socket.Close() }()
	if string(reply) == string(replyCrossed) {
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
