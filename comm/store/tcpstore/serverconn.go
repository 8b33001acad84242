package comm

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
)

// storeMaxWaits is how many gets and waits of one client may be pending.
const storeMaxWaits = 1 << 16

// A storeEvent is what the owner of the state gets to know: a request, or that a client is gone.
type storeEvent struct {
	from    *storeClient
	request storeRequest
	gone    bool
}

// own is the goroutine that owns the state. It never waits for anything but the next event.
func (s *StoreServer) own() {
	defer close(s.settled)
	state := newStoreState()
	for {
		select {
		case e := <-s.events:
			if e.gone {
				e.from.leave(&state)
			} else {
				e.from.handle(&state, e.request)
			}
		case <-s.closing:
			return
		}
	}
}

// A storeClient is one connection to a StoreServer, past its handshake.
type storeClient struct {
	server *StoreServer
	conn   net.Conn
	out    *storeOutbox
	kicked atomic.Pointer[error]   // why the server hung up
	waits  map[uint64]*storeWaiter // by request; belongs to the owner of the state
}

// serve reads requests until the client or the server goes.
func (c *storeClient) serve() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if c.out.drain(c.conn) != nil {
			_ = c.conn.Close() // wakes the reader
		}
	}()
	err := c.read()
	if errors.Is(err, errStoreServerClosing) {
		<-c.server.settled
		c.takeLeave(written)
		return
	}
	_ = c.conn.Close()
	c.out.close()
	<-written
	level := slog.LevelDebug // processes end, and it is not the store's to say whether they should have
	if why := c.kicked.Load(); why != nil {
		level, err = slog.LevelInfo, *why
	} else if errors.Is(err, errStoreFrame) {
		level = slog.LevelInfo
	}
	c.server.log.Log(context.Background(), level, "store: a client is gone",
		"addr", c.server.Addr(), "client", c.conn.RemoteAddr().String(), "error", err)
	_ = c.tell(storeEvent{from: c, gone: true})
}

var (
	errStoreServerClosing = errors.New("the store is closing")
	errStoreSlowClient    = errors.New("it does not take its answers")
	errStoreTwice         = errors.New("two waits with the same id")
)

// read returns why it ended, never nil.
func (c *storeClient) read() error {
	r := bufio.NewReader(c.conn)
	for {
		body, err := readStoreFrame(r)
		select {
		case <-c.server.closing:
			return errStoreServerClosing
		default:
		}
		if err != nil {
			return err
		}
		request, err := parseStoreRequest(body)
		if err != nil {
			return err
		}
		c.out.settle()
		if err := c.tell(storeEvent{from: c, request: request}); err != nil {
			return err
		}
	}
}

func (c *storeClient) tell(e storeEvent) error {
	select {
	case c.server.events <- e:
		return nil
	case <-c.server.closing:
		return errStoreServerClosing
	}
}

// takeLeave writes what is queued, then waits for the client to hang up: closing a connection with unread bytes in
// it would take back what the client has not read yet.
func (c *storeClient) takeLeave(written <-chan struct{}) {
	_ = c.conn.SetDeadline(time.Now().Add(storeFarewell))
	c.out.close()
	<-written
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.conn)
	}
}

// handle does what the client asks for. The owner of the state calls it.
func (c *storeClient) handle(state *storeState, r storeRequest) {
	switch r.kind {
	case storeSet:
		state.set(r.key, r.value)
		c.done(r.id, nil)
	case storeGet, storeWait:
		c.await(state, r)
	case storeAdd:
		sum, err := state.add(r.key, r.n)
		if err != nil {
			c.reply(storeReply{kind: storeFailed, id: r.id, payload: []byte(err.Error())})
			return
		}
		c.done(r.id, binary.BigEndian.AppendUint64(nil, uint64(sum)))
	case storeSwap:
		c.done(r.id, state.compareAndSwap(r.key, r.old, r.value))
	case storeDelete:
		existed := []byte{0}
		if state.remove(r.key) {
			existed[0] = 1
		}
		c.done(r.id, existed)
	case storeForget:
		if w := c.waits[r.id]; w != nil {
			state.forget(w)
			delete(c.waits, r.id)
		}
	default: // parseStoreRequest lets nothing else through
	}
}

func (c *storeClient) await(state *storeState, r storeRequest) {
	answer := func(value []byte) {
		if r.kind == storeWait {
			value = nil
		}
		delete(c.waits, r.id)
		c.done(r.id, value)
	}
	value, ok := state.values[r.key]
	switch {
	case c.waits[r.id] != nil:
		c.kick(errStoreTwice)
	case ok:
		answer(value)
	case len(c.waits) >= storeMaxWaits:
		c.reply(storeReply{kind: storeFailed, id: r.id, payload: []byte("store: too many keys are waited for at once")})
	default:
		c.waits[r.id] = state.await(r.key, answer)
	}
}

func (c *storeClient) done(id uint64, payload []byte) {
	c.reply(storeReply{kind: storeDone, id: id, payload: payload})
}

func (c *storeClient) reply(r storeReply) {
	if !c.out.put(r.frame()) {
		c.kick(errStoreSlowClient)
	}
}

// kick hangs up; the reader finds out, and says so in the log.
func (c *storeClient) kick(why error) {
	c.kicked.CompareAndSwap(nil, &why)
	_ = c.conn.Close()
	c.out.close()
}

// leave ends what the client still waits for.
func (c *storeClient) leave(state *storeState) {
	for _, w := range c.waits {
		state.forget(w)
	}
	clear(c.waits)
}
