package tcpstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/store/kv"
)

// maxWaits is how many gets and waits of one client may be pending.
const maxWaits = 1 << 16

// An event goes to the goroutine that owns the values: a request, or the end of a connection.
type event struct {
	from    *serverConn
	request request
	gone    bool
}

// handleEvents owns the values. It waits for nothing but the next event.
func (s *Server) handleEvents() {
	defer close(s.stopped)
	state := kv.NewState()
	for {
		select {
		case e := <-s.events:
			if e.gone {
				e.from.cancelAll(state)
			} else {
				e.from.handle(state, e.request)
			}
		case <-s.closing:
			return
		}
	}
}

// A serverConn is the server's end of a connection, after the handshake.
type serverConn struct {
	server *Server
	conn   net.Conn
	out    *sendQueue
	reason atomic.Pointer[error] // why the server has disconnected the client; nil: it has not
	waits  map[uint64]*kv.Waiter // by request; belongs to handleEvents
}

func newServerConn(server *Server, conn net.Conn) *serverConn {
	return &serverConn{server: server, conn: conn, out: newSendQueue(), waits: map[uint64]*kv.Waiter{}}
}

// serve reads requests until the client or the server ends.
func (c *serverConn) serve() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if c.out.writeTo(replyWriter{c}) != nil {
			_ = c.conn.Close() // wakes the reader
		}
	}()
	err := c.read()
	if errors.Is(err, errClosing) {
		<-c.server.stopped
		c.flush(written)
		return
	}
	_ = c.conn.Close()
	c.out.close()
	<-written
	level := slog.LevelDebug // processes end, and the store cannot tell whether they should have
	if reason := c.reason.Load(); reason != nil {
		level, err = slog.LevelInfo, *reason
	} else if errors.Is(err, errMalformed) {
		level = slog.LevelInfo
	}
	c.server.log.Log(context.Background(), level, "store: a client is gone",
		"addr", c.server.Addr(), "client", c.conn.RemoteAddr().String(), "error", err)
	_ = c.submit(event{from: c, gone: true})
}

var (
	errClosing    = errors.New("the store is closing")
	errSlowClient = errors.New("it does not take its answers")
	errSameID     = errors.New("two waits with the same id")
)

// read submits requests and returns why it ended, never nil.
func (c *serverConn) read() error {
	r := bufio.NewReader(c.conn)
	for {
		body, err := readFrame(r)
		select {
		case <-c.server.closing:
			return errClosing
		default:
		}
		if err != nil {
			return err
		}
		request, err := parseRequest(body)
		if err != nil {
			return err
		}
		c.out.waitLow()
		if err := c.submit(event{from: c, request: request}); err != nil {
			return err
		}
	}
}

// submit hands e to handleEvents.
func (c *serverConn) submit(e event) error {
	select {
	case c.server.events <- e:
		return nil
	case <-c.server.closing:
		return errClosing
	}
}

// flush writes the queued replies, then waits for the client to close the connection. If the server closed it first,
// with bytes in it that it has not read, the kernel would drop replies that the client has not read.
func (c *serverConn) flush(written <-chan struct{}) {
	_ = c.conn.SetWriteDeadline(c.server.replyDeadline()) // of what is being written
	c.out.close()
	<-written
	_ = c.conn.SetReadDeadline(time.Now().Add(closeTimeout))
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.conn)
	}
}

// A replyWriter writes to a client. While the server is closing, it gives up a client that takes none of its replies
// for closeTimeout.
type replyWriter struct{ to *serverConn }

func (w replyWriter) Write(b []byte) (n int, err error) {
	const piece = 64 << 10
	for n < len(b) && err == nil {
		select {
		case <-w.to.server.closing:
			_ = w.to.conn.SetWriteDeadline(w.to.server.replyDeadline())
		default:
		}
		var written int
		written, err = w.to.conn.Write(b[n:min(n+piece, len(b))])
		n += written
	}
	return n, err
}

// handle does what the client asks for. Only handleEvents calls it, and the methods below.
func (c *serverConn) handle(state *kv.State, r request) {
	switch r.kind {
	case setKind:
		state.Set(r.key, r.value)
		c.done(r.id, nil)
	case getKind, waitKind:
		c.await(state, r)
	case addKind:
		sum, err := state.Add(r.key, r.n)
		if err != nil {
			c.send(reply{kind: failedKind, id: r.id, payload: []byte(err.Error())})
			return
		}
		c.done(r.id, binary.BigEndian.AppendUint64(nil, uint64(sum)))
	case swapKind:
		c.done(r.id, state.CompareAndSwap(r.key, r.old, r.value))
	case deleteKind:
		existed := []byte{0}
		if state.Delete(r.key) {
			existed[0] = 1
		}
		c.done(r.id, existed)
	case cancelKind:
		if w := c.waits[r.id]; w != nil {
			state.Cancel(w)
			delete(c.waits, r.id)
		}
	default: // parseRequest returns no other kind
	}
}

func (c *serverConn) await(state *kv.State, r request) {
	answer := func(value []byte) {
		if r.kind == waitKind {
			value = nil
		}
		delete(c.waits, r.id)
		c.done(r.id, value)
	}
	value, exists := state.Get(r.key)
	switch {
	case c.waits[r.id] != nil:
		c.disconnect(errSameID)
	case exists:
		answer(value)
	case len(c.waits) >= maxWaits:
		c.send(reply{kind: failedKind, id: r.id, payload: []byte("store: too many keys are waited for at once")})
	default:
		c.waits[r.id] = state.Await(r.key, answer)
	}
}

func (c *serverConn) done(id uint64, payload []byte) {
	c.send(reply{kind: doneKind, id: id, payload: payload})
}

func (c *serverConn) send(r reply) {
	if !c.out.push(r.frame()) {
		c.disconnect(errSlowClient)
	}
}

// disconnect closes the connection. The reader notices, and logs the reason.
func (c *serverConn) disconnect(reason error) {
	c.reason.CompareAndSwap(nil, &reason)
	_ = c.conn.Close()
	c.out.close()
}

// cancelAll ends what the client waits for.
func (c *serverConn) cancelAll(state *kv.State) {
	for _, w := range c.waits {
		state.Cancel(w)
	}
	clear(c.waits)
}
