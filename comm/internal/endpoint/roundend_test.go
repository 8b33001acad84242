package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/tcp"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/fulltest"
)

// TestStreamsAreUsedAgain: rounds end in the midst of whatever goes on between two ranks, one rank hears of it before the other, and there are
// no new connections. Every message of a round is the one that was sent in it.
func TestStreamsAreUsedAgain(t *testing.T) {
	identity, err := auth.NewIdentity([]byte(secret), "workers")
	if err != nil {
		t.Fatal(err)
	}
	far := func(net.Conn) bool { return false }
	for name, cfg := range map[string]tcp.Config{
		"TCP": {}, "bundles": {Connections: 3}, "TLS": {TLS: identity, Near: far}, "TLS over bundles": {TLS: identity, Near: far, Connections: 3},
	} {
		for seed := range uint64(fulltest.Else(20, 2)) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				w := tcpWorldOf(t, Options{ConnectTimeout: minute, Revocable: true}, cfg)
				for range 6 {
					must(t, w.send(0, 1, 7, nil), w.recv(1, 0, 7, nil)) // they are connected
					traffic(t, w, rng)
					first := rng.IntN(2)
					w.ends[first].Revoke(revocation())
					w.comms[1-first].Send(first, 3, 0, call.Call{}, make([]byte, rng.IntN(2*wire.EagerLimit)))
					w.ends[1-first].Revoke(revocation())
					w = w.nextRound(t)
				}
				must(t, w.send(0, 1, 7, nil), w.recv(1, 0, 7, nil))
				w.close(t)
			})
		}
	}
}

// traffic begins messages of all lengths in both directions, only some of which are received, and checks those that arrive.
func traffic(t *testing.T, w *testWorld, rng *rand.Rand) {
	type message struct {
		op      *Op
		in, out []byte
	}
	var begun []message
	for i := range 1 + rng.IntN(30) {
		n := []int{0, 1, 100, wire.EagerLimit, wire.EagerLimit + 1, mostRest}[rng.IntN(6)]
		from, receives := rng.IntN(2), rng.IntN(3) > 0
		m := message{in: make([]byte, n), out: pattern(n, int(rng.Uint32N(1<<20)))}
		w.send(from, 1-from, 100+i, bytes.Clone(m.out))
		if receives {
			m.op = w.recv(1-from, from, 100+i, m.in)
			begun = append(begun, m)
		}
	}
	for _, m := range begun[:rng.IntN(len(begun)+1)] {
		if err := m.op.Wait(t.Context(), minute); err != nil || !bytes.Equal(m.in, m.out) {
			t.Fatalf("a message of %d bytes: %v, equal: %t", len(m.out), err, bytes.Equal(m.in, m.out))
		}
	}
}

// nextRound returns the world of two ranks in the next round, which have the streams of w, and no others.
func (w *testWorld) nextRound(t *testing.T) *testWorld {
	next := &testWorld{}
	streams := make([][]transport.Stream, 2)
	for r, e := range w.ends {
		for !e.hasRoundEnded(1 - r) {
			runtime.Gosched()
		}
		if streams[r] = e.TakeStreams(); streams[r][1-r] == nil {
			t.Fatalf("rank %d has no stream", r)
		}
	}
	w.close(t)
	for r := range w.ends {
		e := New(transport.Alone{}, r, 2, Options{Revocable: true, Streams: streams[r]})
		comm, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		next.ends, next.comms = append(next.ends, e), append(next.comms, comm)
	}
	return next
}

func (e *Endpoint) hasRoundEnded(rank int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[rank]
	return p.roundEnd.received && p.out.Len() == 0
}

// TestStreamsThatAreNotUsedAgain: of a rank that has died, has left, has not said yet that its round is over, or still writes.
func TestStreamsThatAreNotUsedAgain(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, w *testWorld){
		"is silent": func(*testing.T, *testWorld) {},
		"has left": func(t *testing.T, w *testWorld) {
			if err := w.ends[1].Close(); err != nil {
				t.Error(err)
			}
		},
		"reads nothing": func(t *testing.T, w *testWorld) {
			w.ends[1].mu.Lock()
			t.Cleanup(w.ends[1].mu.Unlock)
			for range 100 {
				w.send(0, 1, 0, make([]byte, wire.EagerLimit))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tcpWorld(t, Options{ConnectTimeout: minute, Revocable: true})
			must(t, w.send(0, 1, 7, nil), w.recv(1, 0, 7, nil))
			t.Cleanup(func() { _ = w.ends[1].Close() })
			before(t, w)
			w.ends[0].Revoke(revocation())
			if s := w.ends[0].TakeStreams()[1]; s != nil {
				t.Error("its stream is used again")
			}
			if err := w.ends[0].Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRevokeCopiesNoLongMessage: a long message that is being written is given up. Its stream is of no use any more.
func TestRevokeCopiesNoLongMessage(t *testing.T) {
	w := tcpWorld(t, Options{ConnectTimeout: minute, Revocable: true})
	sent, received := longMessage(t, w)
	w.ends[0].Revoke(revocation())
	if w.ends[0].isWriting(1) {
		t.Error("the rest of the message waits to be written")
	}
	w.ends[1].mu.Unlock()
	if err := sent.Wait(t.Context(), minute); !errors.Is(err, errRevoked) {
		t.Errorf("the send: %v", err)
	}
	if s := w.ends[0].TakeStreams()[1]; s != nil {
		t.Error("its stream is used again")
	}
	w.ends[1].Revoke(revocation())
	if err := received.Wait(t.Context(), minute); !errors.Is(err, errRevoked) {
		t.Errorf("the receive: %v", err)
	}
	w.close(t)
}

// TestRevokeEndsSendsOfClosedCommunicators: one waits behind a long message, which is given up.
func TestRevokeEndsSendsOfClosedCommunicators(t *testing.T) {
	w := tcpWorld(t, Options{ConnectTimeout: minute, Revocable: true})
	longMessage(t, w)
	sub, err := w.ends[0].Open(7, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	short := sub.Send(1, 0, 0, call.Call{}, []byte("short"))
	sub.Close()
	if short.Ended() {
		t.Fatalf("it has ended before: %v", short.Err())
	}
	w.ends[0].Revoke(revocation())
	if !short.Ended() || !errors.Is(short.Err(), errRevoked) {
		t.Errorf("ended: %t, error: %v", short.Ended(), short.Err())
	}
	w.ends[1].mu.Unlock()
	w.ends[1].Revoke(revocation())
	w.close(t)
}

// TestRevokeKeepsTheStreamOfALongMessage: rank 0 gives up its message because the round is over. Rank 1 learns that late, and until then does not
// take rank 0 for dead.
func TestRevokeKeepsTheStreamOfALongMessage(t *testing.T) {
	revocable(t, 2, func(t *testing.T, w *testWorld) {
		_, received := longMessage(t, w)
		w.ends[0].Revoke(revocation())
		w.ends[1].mu.Unlock()
		time.AfterFunc(10*RevokeTimeout, func() { w.ends[1].Revoke(revocation()) })
		if err := received.Wait(t.Context(), minute); !errors.Is(err, errRevoked) {
			t.Errorf("the receive: %v", err)
		}
	})
}

// longMessage begins a long message from rank 0 to rank 1, and returns before all of it has been written. It leaves rank 1's mutex locked, so that
// rank 1 reads no more. The caller unlocks it.
func longMessage(t *testing.T, w *testWorld) (sent, received *Op) {
	t.Helper()
	const long = 64 << 20
	received = w.recv(1, 0, 0, make([]byte, long))
	sent = w.send(0, 1, 0, make([]byte, long))
	for !w.ends[0].isWriting(1) {
		runtime.Gosched()
	}
	w.ends[1].mu.Lock()
	if !w.ends[0].isWriting(1) {
		t.Fatal("the message has arrived already")
	}
	return sent, received
}

// isWriting reports whether a long message to rank has begun.
func (e *Endpoint) isWriting(rank int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peers[rank].out.Rest() > mostRest
}

// BenchmarkRevoke ends many operations at once.
func BenchmarkRevoke(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		b.StopTimer()
		w := tcpWorld(b, Options{ConnectTimeout: minute, Revocable: true})
		for i := range n {
			w.send(0, 1, i, nil)
			w.recv(0, 1, n+i, nil)
		}
		b.StartTimer()
		w.ends[0].Revoke(revocation())
		b.StopTimer()
		for _, e := range w.ends {
			_ = e.Close()
		}
		b.StartTimer()
	}
}

// TestNothingFollowsARoundEnd: what does is an error of the protocol, and says nothing of this rank's round.
func TestNothingFollowsARoundEnd(t *testing.T) {
	for name, next := range map[string]wire.Header{
		"nothing":           {},
		"a message":         {Kind: wire.Eager, Context: 1},
		"another round end": {Kind: wire.RoundEnd},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
				r := comm.Recv(0, 0, 0, call.Call{}, nil)
				write(t, conn, wire.Header{Kind: wire.RoundEnd}, nil)
				if next.Kind != 0 {
					write(t, conn, next, nil)
				}
				synctest.Wait()
				select {
				case <-r.Done():
					if err := r.Err(); next.Kind == 0 || !errors.As(err, new(diagnosis.ProtocolError)) {
						t.Error(err)
					}
				default:
					if next.Kind != 0 {
						t.Error("the receive goes on")
					}
				}
			})
		})
	}
}
