package comm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// A storeCall is a request that is under way.
type storeCall struct {
	id    uint64
	reply chan storeReply
}

// ask sends one request and waits for its answer.
func (s *TCPStore) ask(ctx context.Context, op string, r storeRequest) ([]byte, error) {
	call, err := s.send(r)
	if err != nil {
		return nil, err
	}
	payload, err := s.receive(ctx, call)
	if endedBy(ctx, err) {
		s.abandon(call)
		return nil, storeCallError(op, r.key, err)
	}
	return payload, err
}

func (s *TCPStore) send(r storeRequest) (storeCall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return storeCall{}, s.err
	}
	if len(s.pending) >= storeMaxWaits { // the server would say so, but only to this one of them
		return storeCall{}, fmt.Errorf("store at %s: too many calls and keys are waiting at once, the most is %d", s.addr, storeMaxWaits)
	}
	s.lastID++
	r.id = s.lastID
	if !s.out.put(r.frame()) {
		return storeCall{}, fmt.Errorf("store at %s takes no requests: %d MiB are waiting to be sent", s.addr, storeOutboxFull>>20)
	}
	call := storeCall{id: r.id, reply: make(chan storeReply, 1)}
	s.pending[call.id] = call.reply
	return call, nil
}

// receive waits for the answer to call. An answer that is there counts more than any reason not to wait for it.
func (s *TCPStore) receive(ctx context.Context, call storeCall) ([]byte, error) {
	select {
	case r := <-call.reply:
		return r.result()
	default:
	}
	select {
	case r := <-call.reply:
		return r.result()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.broken:
	}
	select {
	case r := <-call.reply:
		return r.result()
	default:
		return nil, s.failure()
	}
}

func (r storeReply) result() ([]byte, error) {
	if r.kind == storeFailed {
		return nil, errors.New(string(r.payload))
	}
	return r.payload, nil
}

func endedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// abandon makes both ends forget those calls that have no answer yet.
func (s *TCPStore) abandon(calls ...storeCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		if _, ok := s.pending[call.id]; ok {
			delete(s.pending, call.id)
			s.out.put(storeRequest{kind: storeForget, id: call.id}.frame())
		}
	}
}

func (s *TCPStore) write() {
	if err := s.out.drain(s.conn); err != nil {
		s.fail(s.lost(err))
	}
}

// read hands every answer to the call that waits for it.
func (s *TCPStore) read() {
	in := bufio.NewReader(s.conn)
	for {
		body, err := readStoreFrame(in)
		if err != nil {
			s.fail(s.lost(err))
			return
		}
		reply, err := parseStoreReply(body)
		if err != nil {
			s.fail(s.lost(err))
			return
		}
		s.mu.Lock()
		if waiting, ok := s.pending[reply.id]; ok {
			delete(s.pending, reply.id)
			waiting <- reply
		}
		s.mu.Unlock()
	}
}

func (s *TCPStore) lost(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("store at %s is gone: it closed the connection (%w)", s.addr, err)
	}
	return fmt.Errorf("store at %s is gone: %w", s.addr, err)
}

// fail makes every pending and later call return err, unless an earlier error does so already.
func (s *TCPStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	close(s.broken)
	s.out.close()
	_ = s.conn.Close()
}

func (s *TCPStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// dialStore connects and proves itself, again and again until ctx ends or the answer is final.
func dialStore(ctx context.Context, addr string, access storeAccess) (net.Conn, error) {
	const firstPause, longestPause = 5 * time.Millisecond, 200 * time.Millisecond
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	start := time.Now()
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := dialStoreOnce(ctx, addr, access)
		_, refused := errors.AsType[*auth.RefusedError](err)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, auth.ErrWrongToken):
			return nil, access.secret.refusedBy("store at " + addr)
		case refused:
			return nil, fmt.Errorf("store at %s %w", addr, err)
		case errors.Is(err, auth.ErrNoToken):
			return nil, fmt.Errorf("store at %s: %w", addr, err)
		case errors.Is(err, auth.ErrNotGorun):
			return nil, fmt.Errorf("store at %s: something else listens there: %w", addr, err)
		case last == nil || !isOver(ctx): // an attempt that was cut short tells less than those before it
			last = err
			if access.failed != nil {
				access.failed(err)
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, &storeDialError{addr: addr, after: time.Since(start), last: last, ended: ctx.Err()}
		}
	}
}

// isOver reports whether ctx has ended, or is about to: an attempt that fails at its deadline can be ahead of it.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func dialStoreOnce(ctx context.Context, addr string, access storeAccess) (net.Conn, error) {
	conn, err := admission.Connect(ctx, new(net.Dialer).DialContext, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(admission.DefaultTime))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	stream, err := access.dial(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return stream, conn.SetDeadline(time.Time{})
}

// A storeDialError says that nobody answered in time, and wraps both the last attempt's error and the context's.
type storeDialError struct {
	addr        string
	after       time.Duration
	last, ended error
}

func (e *storeDialError) Error() string {
	return fmt.Sprintf("store at %s does not answer: %s (after %v)", e.addr, withoutAddress(e.last), e.after.Round(time.Millisecond))
}

// withoutAddress is why a connection could not be made, where the address has been said.
func withoutAddress(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}

func (e *storeDialError) Unwrap() []error { return []error{e.last, e.ended} }
