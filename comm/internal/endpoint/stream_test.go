package endpoint

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/progress"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

// overTCP runs body with the endpoints and comms of two ranks whose streams are polled.
func overTCP(t *testing.T, body func(t *testing.T, w *testWorld)) {
	overTCPWith(t, Options{ConnectTimeout: minute}, body)
}

func overTCPWith(t *testing.T, opt Options, body func(t *testing.T, w *testWorld)) {
	w := tcpWorld(t, opt)
	body(t, w)
	w.close(t)
}

const secret = "a secret of 16 bytes and more"

func (w *testWorld) close(t *testing.T) {
	for _, e := range w.ends {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func tcpWorld(t testing.TB, opt Options) *testWorld { return tcpWorldOf(t, opt, tcp.Config{}) }

// tcpWorldOf is tcpWorld with more settings.
func tcpWorldOf(t testing.TB, opt Options, cfg tcp.Config) *testWorld {
	testkit.Once(t)
	lns, peers := make([]net.Listener, 2), make([]string, 2)
	for r := range lns {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lns[r], peers[r] = ln, ln.Addr().String()
	}
	w := &testWorld{}
	for r, ln := range lns {
		cfg.World, cfg.Rank, cfg.Peers, cfg.Token = 1, r, peers, []byte(secret)
		e := New(tcp.New(ln, cfg), r, 2, opt)
		comm, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		w.ends, w.comms = append(w.ends, e), append(w.comms, comm)
	}
	return w
}

func TestBytesMoveWhileNobodyWaits(t *testing.T) {
	overTCP(t, func(t *testing.T, w *testWorld) {
		for _, n := range []int{0, 8, wire.EagerLimit, 16 << 20} {
			for range 3 {
				a, b := pattern(n, 1), pattern(n, 2)
				fromA, fromB := make([]byte, n), make([]byte, n)
				for _, op := range []*Op{
					w.recv(1, 0, 0, fromA), w.recv(0, 1, 0, fromB), w.send(0, 1, 0, a), w.send(1, 0, 0, b),
				} {
					select {
					case <-op.Done():
					case <-time.After(minute):
						t.Fatalf("an operation on %d bytes hangs", n)
					}
					if op.Err() != nil {
						t.Error(op.Err())
					}
				}
				if !bytes.Equal(fromA, a) || !bytes.Equal(fromB, b) {
					t.Errorf("%d bytes arrived as others", n)
				}
			}
		}
	})
}

// Where processors are few who waits sleeps soon, and is woken by what comes, and by room for what it sends.
func TestOversubscribedRanksSleepAndWake(t *testing.T) {
	overTCPWith(t, Options{ConnectTimeout: minute, Options: progress.Options{Oversubscribed: true}}, func(t *testing.T, w *testWorld) {
		for _, n := range []int{1, 4 << 20} {
			in := make([]byte, n)
			for i := range 3 {
				out := pattern(n, i)
				done := make(chan error)
				go func() {
					op := w.recv(0, 1, 0, in)
					done <- op.Wait(t.Context(), minute)
				}()
				must(t, w.recv(1, 0, 0, make([]byte, n)), w.send(0, 1, 0, out), w.send(1, 0, 0, out))
				if err := <-done; err != nil || !bytes.Equal(in, out) {
					t.Errorf("%d bytes: %v", n, err)
				}
			}
		}
	})
}

// Many goroutines wait at once, and only one polls.
func TestManyGoroutinesWaitAtOnce(t *testing.T) {
	overTCP(t, func(t *testing.T, w *testWorld) {
		const goroutines, rounds = 8, 50
		errs := make(chan error, 2*goroutines)
		for r := range 2 {
			for tag := range goroutines {
				go func() {
					var err error
					in := make([]byte, 1)
					for i := range rounds {
						got := w.recv(r, 1-r, tag, in)
						sent := w.send(r, 1-r, tag, []byte{byte(i)})
						for _, op := range []*Op{got, sent} {
							if failed := op.Wait(t.Context(), minute); err == nil {
								err = failed
							}
						}
						if err == nil && in[0] != byte(i) {
							t.Errorf("rank %d, tag %d: got %d in round %d", r, tag, in[0], i)
						}
					}
					errs <- err
				}()
			}
		}
		for range 2 * goroutines {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// What a rank has sent arrives though it neither waits nor sends anything else, whether the peer polls, sleeps or looks
// elsewhere.
func TestShortMessagesInARowArrive(t *testing.T) {
	for name, opt := range map[string]Options{"": {}, "oversubscribed": {Options: progress.Options{Oversubscribed: true}}} {
		t.Run(name, func(t *testing.T) {
			opt.ConnectTimeout = minute
			overTCPWith(t, opt, func(t *testing.T, w *testWorld) {
				const messages = 40
				must(t, w.send(1, 0, 0, []byte{1}), w.recv(0, 1, 0, make([]byte, 1)))
				for _, wait := range []func(op *Op) error{
					func(op *Op) error { return op.Wait(t.Context(), minute) },
					func(op *Op) error { return op.Sleep(t.Context(), minute) },
					func(op *Op) error { <-op.Done(); return op.Err() },
				} {
					for i := range byte(messages) {
						w.send(0, 1, 0, []byte{i})
					}
					for i := range byte(messages) {
						in := make([]byte, 1)
						if err := wait(w.recv(1, 0, 0, in)); err != nil || in[0] != i {
							t.Fatalf("got %d, %v, want %d", in[0], err, i)
						}
					}
				}
			})
		})
	}
}
