package progress

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/transport"
)

// An end is one end of a socket, as a stream and as what moves its bytes: each byte that comes ends a request.
type end struct {
	transport.Stream
	t      *testing.T
	engine *Engine
	fd     int
	inside atomic.Int32 // goroutines in Move

	// Guarded by the engine's mutex.
	requests []*Request
	come     int // bytes that no request has waited for
}

func (s *end) Descriptor() int { return s.fd }
func (s *end) Close() error    { return unix.Close(s.fd) }
func (s *end) HasOutput() bool { return false }
func (s *end) Fail(err error)  { s.t.Errorf("it fails: %v", err) }
func (s *end) Arm(bool) uint32 { return unix.POLLIN }

func (s *end) Move() bool {
	if s.inside.Add(1) != 1 {
		s.t.Error("two goroutines move bytes at once")
	}
	defer s.inside.Add(-1)
	b := make([]byte, 1)
	if n, err := unix.Read(s.fd, b); n <= 0 {
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			s.t.Error(err)
		}
		return false
	}
	if len(s.requests) == 0 {
		s.come++
		return true
	}
	r := s.requests[0]
	s.requests = s.requests[1:]
	s.engine.End(r)
	return true
}

// request is a request for a byte.
func (s *end) request() *Request {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	r := new(Request)
	if s.come > 0 {
		s.come--
		s.engine.End(r)
	} else {
		s.requests = append(s.requests, r)
	}
	return r
}

// await waits for r as an endpoint does.
func (s *end) await(r *Request) {
	e, c := s.engine, s.engine.Conn(1)
	e.mu.Lock()
	e.BeginWait()
	e.Poll(r, c)
	if r.Ended() {
		e.mu.Unlock()
		return
	}
	w := e.Park(r, c)
	e.mu.Unlock()
	for !r.Ended() {
		<-w.Wake
		e.mu.Lock()
		e.Poll(r, c)
		e.mu.Unlock()
	}
	e.mu.Lock()
	e.Unpark(w)
	e.mu.Unlock()
}

// withEngine runs body with an engine that has one stream, the other end of which is a descriptor.
func withEngine(t *testing.T, opt Options, body func(t *testing.T, s *end, other int)) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	e := New(new(sync.Mutex), 2, opt)
	s := &end{t: t, engine: e, fd: fds[0]}
	e.mu.Lock()
	if !e.Start() {
		t.Fatal("there is no epoll")
	}
	e.Add(1, s, s)
	e.Arm(e.Conn(1))
	e.mu.Unlock()
	body(t, s, fds[1])
	e.mu.Lock()
	e.Remove(e.Conn(1))
	e.mu.Unlock()
	e.Close()
}

var options = map[string]Options{
	"":                   {},
	"oversubscribed":     {Oversubscribed: true},
	"in one process":     {SharesProcess: true},
	"oversubscribed too": {Oversubscribed: true, SharesProcess: true},
}

// Many goroutines wait at once, and each is woken, though only one of them moves bytes at a time.
func TestManyGoroutinesWait(t *testing.T) {
	for name, opt := range options {
		t.Run(name, func(t *testing.T) {
			withEngine(t, opt, func(t *testing.T, s *end, other int) {
				const goroutines, rounds = 8, 50
				var all sync.WaitGroup
				for range goroutines {
					all.Go(func() {
						for range rounds {
							s.await(s.request())
						}
					})
				}
				for range goroutines * rounds {
					if _, err := io.WriteString(writer(other), "x"); err != nil {
						t.Fatal(err)
					}
				}
				all.Wait()
			})
		})
	}
}

// A writer writes to a descriptor.
type writer int

func (w writer) Write(b []byte) (int, error) { return unix.Write(int(w), b) }

// Bytes move though nobody polls: somebody sleeps, or has asked for the channel, or does something else altogether.
func TestBytesMoveWhileNobodyPolls(t *testing.T) {
	withEngine(t, Options{}, func(t *testing.T, s *end, other int) {
		for range 3 {
			r := s.request()
			s.engine.mu.Lock()
			done := s.engine.Done(r, s.engine.Conn(1))
			s.engine.mu.Unlock()
			if _, err := io.WriteString(writer(other), "xx"); err != nil {
				t.Fatal(err)
			}
			<-done
			s.await(s.request())
		}
		r := s.request()
		if _, err := io.WriteString(writer(other), "x"); err != nil {
			t.Fatal(err)
		}
		for !r.Ended() {
			time.Sleep(time.Millisecond)
		}
	})
}

// When nothing comes everybody sleeps: nothing runs until the peer sends something.
func TestAnIdleEngineSleeps(t *testing.T) {
	for name, opt := range options {
		t.Run(name, func(t *testing.T) {
			withEngine(t, opt, func(t *testing.T, s *end, other int) {
				for range 100 {
					if _, err := io.WriteString(writer(other), "x"); err != nil {
						t.Fatal(err)
					}
					s.await(s.request())
				}
				e := s.engine
				asleep := func() bool {
					e.mu.Lock()
					defer e.mu.Unlock()
					return !e.polling && !e.isPaused && e.Conn(1).armed
				}
				for begun := time.Now(); !asleep(); time.Sleep(time.Millisecond) {
					if time.Since(begun) > time.Minute {
						t.Fatal("it does not go to sleep")
					}
				}
			})
		})
	}
}

// TestWhoPollsNoticesOthers: a yield that takes long shows the goroutine that polls that others want its processor.
func TestWhoPollsNoticesOthers(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pair[1]) })
	e := New(new(sync.Mutex), 2, Options{})
	stream := &end{t: t, engine: e, fd: pair[0]}
	t.Cleanup(func() { _ = stream.Close() })
	e.Add(1, stream, stream)
	yields := 0
	e.yieldTo = func() {
		yields++
		for began := time.Now(); time.Since(began) < 5*time.Microsecond; {
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for yields == 0 { // a busy machine may not let it look twice in time
		e.Poll(new(Request), e.Conn(1))
	}
	if !e.contention.IsShared() {
		t.Errorf("%d yields, and it takes the processor for its own", yields)
	}
}
