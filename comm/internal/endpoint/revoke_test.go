package endpoint

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// revocable is bubble with ranks whose endpoints are Revocable.
func revocable(t *testing.T, size int, body func(t *testing.T, w *testWorld)) {
	t.Helper()
	bubble(t, size, func(t *testing.T, w *testWorld) {
		for _, e := range w.ends {
			e.opt.Revocable = true
		}
		body(t, w)
	})
}

var errRevoked = errors.New("rank 2 was killed")

func revocation() *diagnosis.Failure {
	return &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: 2, Text: errRevoked.Error(), Err: errRevoked}
}

// connected are receives of ranks 0 and 1 from rank 2, which have a stream to it and to each other.
func connected(t *testing.T, w *testWorld) (ops []*Op) {
	t.Helper()
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		must(t, w.send(pair[1], pair[0], 1, nil), w.recv(pair[0], pair[1], 1, nil))
	}
	return []*Op{w.recv(0, 2, 0, nil), w.recv(1, 2, 0, nil)}
}

// TestStatusOfReceive: a rank that waits for a message is busy from the beginning, and not only when it has asked why.
func TestStatusOfReceive(t *testing.T) {
	revocable(t, 3, func(t *testing.T, w *testWorld) {
		op := connected(t, w)[0]
		status := func() (isBusy, isStalled bool) {
			synctest.Wait()
			_, isBusy, isStalled = (*Communicator)(op.comm).Status()
			return isBusy, isStalled
		}
		if isBusy, _ := status(); isBusy {
			t.Error("busy before it waits")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- op.Wait(ctx, minute) }()
		time.Sleep(diagnosis.FirstPause(minute) / 2)
		if isBusy, isStalled := status(); !isBusy || isStalled {
			t.Errorf("busy: %v, stalled: %v", isBusy, isStalled)
		}
		time.Sleep(diagnosis.FirstPause(minute))
		if isBusy, isStalled := status(); !isBusy || !isStalled {
			t.Errorf("later: busy: %v, stalled: %v", isBusy, isStalled)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if isBusy, isStalled := status(); isBusy || isStalled {
			t.Errorf("at the end: busy: %v, stalled: %v", isBusy, isStalled)
		}
	})
}

// TestWhoJudgesOfADeath: a rank waits for Revoke before it judges by itself, but not for long, and not in vain.
func TestWhoJudgesOfADeath(t *testing.T) {
	for name, c := range map[string]struct {
		after func(e *Endpoint) time.Duration // when the receive has to end
		isIt  error
	}{
		"revoked": {func(e *Endpoint) time.Duration { e.Revoke(revocation()); return 0 }, errRevoked},
		"later": {func(e *Endpoint) time.Duration {
			time.AfterFunc(RevokeTimeout/2, func() { e.Revoke(revocation()) })
			return RevokeTimeout / 2
		}, errRevoked},
		"not revoked": {func(*Endpoint) time.Duration { return RevokeTimeout }, nil},
		"not revocable any more": {func(e *Endpoint) time.Duration {
			e.NotRevocable()
			e.NotRevocable()
			return 0
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			revocable(t, 3, func(t *testing.T, w *testWorld) {
				op := connected(t, w)[0]
				begun := time.Now()
				w.kill(2)
				want := c.after(w.ends[0])
				err := op.Wait(t.Context(), minute)
				f, ok := errors.AsType[*diagnosis.Failure](err)
				if d := time.Since(begun); !ok || f.Rank != 2 || f.Kind != diagnosis.PeerFailed || c.isIt != nil && !errors.Is(err, c.isIt) || d != want {
					t.Errorf("after %v: %v, want it after %v", d, err, want)
				}
			})
		})
	}
}

// TestRevokeEndsEverything: operations under way and later ones, of groups that are open and of those opened later; Close waits for nobody.
func TestRevokeEndsEverything(t *testing.T) {
	revocable(t, 3, func(t *testing.T, w *testWorld) {
		ops := connected(t, w)
		w.trs[2].Stop() // it does not answer, though it lives
		defer w.kill(2)
		begun := time.Now()
		f := revocation()
		w.ends[0].Revoke(f)
		w.ends[0].Revoke(&diagnosis.Failure{Kind: diagnosis.Revoked, Text: "again"})
		late, err := w.ends[0].Open(9, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []*Op{ops[0], w.recv(0, 1, 0, nil), w.send(0, 1, 0, nil), late.Recv(1, 0, 0, call.Call{}, nil)} {
			if err := op.Wait(t.Context(), minute); !errors.Is(err, f) {
				t.Errorf("an operation ends with %v", err)
			}
		}
		w.comms[0].AwaitNotified(minute)
		if err := w.ends[0].Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d > 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// TestASurvivorThatClosesIsNotTheCause: it has been told first, and is gone when another rank has not been told yet.
func TestASurvivorThatClosesIsNotTheCause(t *testing.T) {
	revocable(t, 3, func(t *testing.T, w *testWorld) {
		connected(t, w)
		op := w.recv(1, 0, 0, nil)
		w.ends[0].Revoke(revocation())
		if err := w.ends[0].Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(RevokeTimeout / 2)
		w.ends[1].Revoke(revocation())
		if err := op.Wait(t.Context(), minute); !errors.Is(err, errRevoked) {
			t.Errorf("rank 1 got %v", err)
		}
	})
}

// TestRevocationIsNotPassedOn: a rank that has not been told yet that the round is over sends to one that has, and asks it why it waits. It
// does not take the answer for an abort, and neither does one that connects when the group is closed.
func TestRevocationIsNotPassedOn(t *testing.T) {
	revocable(t, 3, func(t *testing.T, w *testWorld) {
		must(t, w.send(0, 1, 1, nil), w.recv(1, 0, 1, nil))
		over := func() *diagnosis.Failure {
			return &diagnosis.Failure{Kind: diagnosis.Revoked, Text: "another round forms"}
		}
		end := func(op *Op, want diagnosis.Kind) {
			err := op.Wait(t.Context(), minute)
			if f, ok := errors.AsType[*diagnosis.Failure](err); !ok || f.Kind != want {
				t.Errorf("%+v, want one that is %s", err, want)
			}
		}
		w.ends[0].Revoke(over())
		op := w.recv(1, 0, 0, nil)
		w.send(1, 0, 0, nil)
		time.AfterFunc(diagnosis.FirstPause(minute)*2, func() { w.ends[1].Revoke(over()) })
		end(op, diagnosis.Revoked)
		w.comms[0].Close()
		end(w.recv(2, 0, 0, nil), diagnosis.Closed)
	})
}

// TestRevokeEndsAClose: one that has begun before.
func TestRevokeEndsAClose(t *testing.T) {
	revocable(t, 3, func(t *testing.T, w *testWorld) {
		connected(t, w)
		w.trs[2].Stop() // it does not answer, though it lives
		defer w.kill(2)
		begun := time.Now()
		time.AfterFunc(time.Second, func() { w.ends[0].Revoke(revocation()) })
		if err := w.ends[0].Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d != time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// TestRevokeCopiesNoLongMessage: a long message that is being written is given up.
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

// TestRevokeKeepsTheStreamOfALongMessage: rank 0 gives up its message because the round is over. Rank 1 learns that
// late, and until then does not take rank 0 for dead.
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

// longMessage begins a long message from rank 0 to rank 1, and returns before all of it has been written. It leaves
// rank 1's mutex locked, so that rank 1 reads no more. The caller unlocks it.
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
	return e.peers[rank].out.Count(wire.Data) > 0
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
