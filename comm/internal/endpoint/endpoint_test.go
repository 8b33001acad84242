package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

const minute = time.Minute

// bubble runs body with the comms of a world of size ranks in virtual time. All endpoints must be closed, and all
// they started ended, when body returns: synctest fails on a goroutine that is left over or on a deadlock.
func bubble(t *testing.T, size int, body func(t *testing.T, w *testWorld)) {
	t.Helper()
	testkit.Once(t)
	synctest.Test(t, func(t *testing.T) {
		w, network := &testWorld{}, transporttest.NewNetwork(size)
		members := make([]int, size)
		for r := range members {
			members[r] = r
		}
		for r := range size {
			w.trs = append(w.trs, transporttest.Mortal(network.Transport(r)))
			e := New(w.trs[r], r, size, Options{ConnectTimeout: minute})
			comm, err := e.Open(1, members)
			if err != nil {
				t.Fatal(err)
			}
			w.ends, w.comms = append(w.ends, e), append(w.comms, comm)
		}
		body(t, w)
		for _, e := range w.ends {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

type testWorld struct {
	trs   []*transporttest.MortalTransport
	ends  []*Endpoint
	comms []*Communicator
}

func (w *testWorld) kill(rank int) { w.trs[rank].Kill() }

func (w *testWorld) send(from, to, tag int, buf []byte) *Op {
	return w.comms[from].Send(to, tag, 0, call.Call{}, buf)
}

func (w *testWorld) recv(at, from, tag int, buf []byte) *Op {
	return w.comms[at].Recv(from, tag, 0, call.Call{}, buf)
}

func must(t *testing.T, ops ...*Op) {
	t.Helper()
	for _, op := range ops {
		if err := op.Wait(t.Context(), minute); err != nil {
			t.Fatal(err)
		}
	}
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed + i>>8)
	}
	return b
}

// wantFailure checks that err is a failure of kind at rank.
func wantFailure(t *testing.T, err error, kind diagnosis.Kind, rank int) {
	t.Helper()
	var f *diagnosis.Failure
	if !errors.As(err, &f) || f.Kind != kind || f.Rank != rank {
		t.Errorf("got error %v, want one of kind %q about rank %d", err, kind, rank)
	}
}

func TestMessagesOfEveryLengthArriveWhole(t *testing.T) {
	lengths := []int{0, 1, wire.HeaderSize, wire.EagerLimit - 1, wire.EagerLimit, wire.EagerLimit + 1, 1 << 20, 3<<20 + 7}
	for _, first := range []string{"send", "receive"} {
		t.Run(first+" first", func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, w *testWorld) {
				for i, n := range lengths {
					for _, to := range []int{1, 0} { // to the peer and to oneself
						out, in := pattern(n, i), make([]byte, n)
						var s, r *Op
						if first == "send" {
							s = w.send(0, to, 5, out)
							synctest.Wait()
							r = w.recv(to, 0, 5, in)
						} else {
							r = w.recv(to, 0, 5, in)
							synctest.Wait()
							s = w.send(0, to, 5, out)
						}
						must(t, s, r)
						if source, tag, got := r.Received(); !bytes.Equal(in, out) || source != 0 || tag != 5 || got != n {
							t.Fatalf("length %d to rank %d: got %d bytes from %d with tag %d, equal %v", n, to, got, source, tag, bytes.Equal(in, out))
						}
					}
				}
			})
		})
	}
}

func TestMessagesWithEqualTagsKeepTheirOrder(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n = 200
		rng := rand.New(rand.NewPCG(1, 2))
		var ops []*Op
		var sent [][]byte
		for i := range n {
			size := 1 + rng.IntN(100)
			if i%5 == 0 {
				size = wire.EagerLimit + rng.IntN(1000) // large ones may not be overtaken by small ones either
			}
			sent = append(sent, pattern(size, i))
			ops = append(ops, w.send(0, 1, 3, sent[i]))
		}
		for i := range n {
			buf := make([]byte, 2*wire.EagerLimit)
			r := w.recv(1, matching.AnySource, matching.AnyTag, buf)
			must(t, r)
			if _, _, got := r.Received(); !bytes.Equal(buf[:got], sent[i]) {
				t.Fatalf("message %d arrived out of order", i)
			}
		}
		must(t, ops...)
	})
}

func TestTagsAndSourcesSelect(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		for _, m := range []struct{ from, tag int }{{0, 1}, {0, 2}, {1, 1}, {1, 2}} {
			must(t, w.send(m.from, 2, m.tag, []byte{byte(10*m.from + m.tag)}))
		}
		synctest.Wait()
		for _, want := range []struct{ from, tag, value int }{{1, 2, 12}, {matching.AnySource, 2, 2}, {1, matching.AnyTag, 11}, {matching.AnySource, matching.AnyTag, 1}} {
			buf := make([]byte, 1)
			must(t, w.recv(2, want.from, want.tag, buf))
			if int(buf[0]) != want.value {
				t.Errorf("from %d with tag %d: got %d, want %d", want.from, want.tag, buf[0], want.value)
			}
		}
	})
}

func TestTooLongAMessageFailsOnlyThatReceive(t *testing.T) {
	for _, n := range []int{10, wire.EagerLimit + 10} {
		bubble(t, 2, func(t *testing.T, w *testWorld) {
			s := w.send(0, 1, 0, pattern(n, 0))
			err := w.recv(1, 0, 0, make([]byte, n-1)).Wait(t.Context(), minute)
			var short *matching.TruncateError
			if !errors.As(err, &short) || *short != (matching.TruncateError{Source: 0, Got: n, Room: n - 1}) {
				t.Errorf("got %v", err)
			}
			must(t, s)
			s, r := w.send(0, 1, 0, []byte{1}), w.recv(1, 0, 0, make([]byte, 1))
			must(t, s, r)
		})
	}
}

func TestAFloodOfMessagesIsHeldBackAtItsSender(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n, size = 500, 32 << 10 // 16 MB, eight times the budget
		var ops []*Op
		for i := range n {
			ops = append(ops, w.send(0, 1, 0, pattern(size, i)))
		}
		must(t, w.send(0, 1, 9, []byte{9})) // may not be stuck behind the flood
		buf := make([]byte, 1)
		must(t, w.recv(1, 0, 9, buf))
		synctest.Wait()
		held := 0
		w.ends[1].mu.Lock()
		for _, m := range w.comms[1].queues.Unexpected() {
			held += len(m.Payload)
		}
		w.ends[1].mu.Unlock()
		if held == 0 || held > wire.EagerCredit {
			t.Errorf("the receiver holds %d bytes, want some and at most %d", held, wire.EagerCredit)
		}
		for i := range n {
			in := make([]byte, size)
			must(t, w.recv(1, 0, 0, in))
			if !bytes.Equal(in, pattern(size, i)) {
				t.Fatalf("message %d is wrong", i)
			}
		}
		must(t, ops...)
	})
}

func TestACancelledReceiveHurtsNobody(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := w.recv(1, 0, 0, make([]byte, 1)).Wait(ctx, minute); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		err := w.recv(1, 0, 0, make([]byte, 1)).Wait(t.Context(), minute)
		wantFailure(t, err, diagnosis.PeerFailed, 0)
		if !errors.Is(err, diagnosis.ErrTimeout) {
			t.Errorf("got %v, want a timeout", err)
		}
		must(t, w.send(0, 1, 0, []byte{1}), w.recv(1, 0, 0, make([]byte, 1)))
	})
}

func TestACancelledSendFailsTheGroupForAll(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		waiting := w.recv(2, 1, 0, make([]byte, 1))
		must(t, w.send(0, 2, 7, nil), w.recv(2, 0, 7, nil)) // 0 and 2 know each other
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := w.send(0, 1, 0, make([]byte, 1<<20))
		if err := s.Wait(ctx, minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		wantFailure(t, waiting.Wait(t.Context(), minute), diagnosis.Aborted, 0)
		wantFailure(t, w.recv(1, 2, 0, nil).Wait(t.Context(), minute), diagnosis.Aborted, 0)
	})
}

func TestADeathEndsEverythingEverywhereAndIsNamed(t *testing.T) {
	bubble(t, 4, func(t *testing.T, w *testWorld) {
		// A chain of waits: 0 on 1, 1 on 2, 2 on 3. Only 2 is connected to 3.
		start := time.Now()
		ops := []*Op{
			w.recv(0, 1, 0, make([]byte, 1)), w.recv(1, 2, 0, make([]byte, 1)), w.recv(2, 3, 0, make([]byte, 1)),
			w.send(2, 3, 0, make([]byte, 1<<20)), w.recv(0, matching.AnySource, 4, nil),
		}
		synctest.Wait()
		w.kill(3)
		for _, op := range ops {
			wantFailure(t, op.Wait(t.Context(), minute), diagnosis.PeerFailed, 3)
		}
		wantFailure(t, w.send(0, 1, 0, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 3)
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of virtual time, want none", d)
		}
	})
}

// Several messages may be with the writer when the peer is lost; the end of the first ends the others.
func TestALossEndsAllThatIsBeingWritten(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		w.trs[1].Stop() // it has begun to read, once
		for range 2 {   // one of which the writer has
			w.send(0, 1, 0, make([]byte, connBuffer-wire.HeaderSize))
		}
		var ops []*Op
		for range 3 { // before there is a stream: they are written together
			ops = append(ops, w.send(0, 1, 0, make([]byte, 100)))
		}
		synctest.Wait()
		e := w.ends[0]
		in := e.lock()
		in.lost(e.peers[1], io.ErrUnexpectedEOF, diagnosis.Unknown) // before its writer knows
		in.unlock()
		w.kill(1)
		for _, op := range ops {
			wantFailure(t, op.Wait(t.Context(), minute), diagnosis.PeerFailed, 1)
		}
	})
}

func TestWhatArrivedBeforeADeathIsDelivered(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		must(t, w.send(0, 1, 0, []byte{42}))
		synctest.Wait()
		w.kill(0)
		synctest.Wait()
		buf := make([]byte, 1)
		must(t, w.recv(1, 0, 0, buf))
		if buf[0] != 42 {
			t.Errorf("got %d, want 42", buf[0])
		}
		wantFailure(t, w.recv(1, 0, 0, buf).Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
	})
}

func TestLeavingInGoodOrder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		waiting := w.recv(1, 0, 9, make([]byte, 1))
		synctest.Wait()
		s := w.send(0, 1, 0, []byte{42})
		if err := w.ends[0].Close(); err != nil {
			t.Error(err)
		}
		must(t, s)
		buf := make([]byte, 1)
		must(t, w.recv(1, 0, 0, buf)) // flushed before the goodbye
		wantFailure(t, waiting.Wait(t.Context(), minute), diagnosis.Closed, 0)
		wantFailure(t, w.send(1, 0, 0, nil).Wait(t.Context(), minute), diagnosis.Closed, 0)
		must(t, w.send(1, 2, 0, nil), w.recv(2, 1, 0, nil)) // the others go on
		if err := w.comms[0].Send(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestAReceiveFromAnyoneEndsWhenAllHaveLeft(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		must(t, w.send(1, 0, 0, nil), w.recv(0, matching.AnySource, 0, nil))
		waiting := w.recv(0, matching.AnySource, 0, nil)
		for _, r := range []int{1, 2} {
			must(t, w.send(2, 0, 3, nil), w.recv(0, 2, 3, nil)) // the last to go is still heard
			if err := w.ends[r].Close(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if waiting.Ended() != (r == 2) {
				t.Errorf("after rank %d has left: finished %v", r, waiting.Ended())
			}
		}
		wantFailure(t, waiting.Wait(t.Context(), minute), diagnosis.Closed, 2)
		wantFailure(t, w.recv(0, matching.AnySource, 0, nil).Wait(t.Context(), minute), diagnosis.Closed, 2)
	})
}

func TestSendsOfAClosedCommunicatorEnd(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		// The peer does not read, so the first message is being written and the second is queued.
		first := comm.Send(0, 0, 0, call.Call{}, []byte("first"))
		synctest.Wait()
		second := comm.Send(0, 0, 0, call.Call{}, []byte("second"))
		third := comm.Send(0, 0, 0, call.Call{}, []byte("third"))
		comm.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := third.Wait(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		_ = conn.Close()
		wantFailure(t, first.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		wantFailure(t, second.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
	})
}

func TestCommunicatorsAreIndependent(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		a, err := w.ends[0].Open(7, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		must(t, a.Send(1, 0, 0, call.Call{}, []byte("early")))
		synctest.Wait() // the message is there before rank 1 opens the comm
		b, err := w.ends[1].Open(7, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		in := make([]byte, 5)
		world := w.recv(1, 0, 0, make([]byte, 5))
		must(t, b.Recv(0, 0, 0, call.Call{}, in))
		if string(in) != "early" {
			t.Errorf("got %q", in)
		}
		a.Fail(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: 0, Text: "enough"})
		wantFailure(t, b.Recv(0, 0, 0, call.Call{}, in).Wait(t.Context(), minute), diagnosis.Aborted, 0)
		must(t, w.send(0, 1, 0, []byte("world")), world)

		// The death of a rank outside the group does not disturb it.
		c, err := w.ends[0].Open(8, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		d, err := w.ends[1].Open(8, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		w.kill(2)
		wantFailure(t, w.recv(0, 2, 0, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 2)
		must(t, c.Send(1, 0, 0, call.Call{}, in), d.Recv(0, 0, 0, call.Call{}, in))
	})
}

func TestDifferentCallsAreFoundAndTold(t *testing.T) {
	for _, late := range []int{0, 1, 2} { // whose call comes after the others' messages
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, w *testWorld) {
				calls := []call.Call{{Kind: 1, Count: 8}, {Kind: 1, Count: 8}, {Kind: 1, Count: 9}}
				var ops []*Op
				begin := func(r int) {
					if err := w.comms[r].Begin(1, calls[r], 0); err != nil {
						return // found at once; the comm's error is checked below
					}
					ops = append(ops,
						w.comms[r].Recv((r+2)%3, 0, 1, calls[r], make([]byte, 1)),
						w.comms[r].Send((r+1)%3, 0, 1, calls[r], make([]byte, 1)))
				}
				for r := range 3 {
					if r != late {
						begin(r)
					}
				}
				synctest.Wait()
				begin(late)
				synctest.Wait()
				for r := range 3 {
					var f *diagnosis.Failure
					if err := w.comms[r].Err(); !errors.As(err, &f) || f.Kind != diagnosis.Mismatched || len(f.Calls) != 2 || f.Calls[0].Call == f.Calls[1].Call {
						t.Errorf("rank %d: comm error is %v, want a mismatch with two calls", r, err)
					}
				}
				for _, op := range ops {
					_ = op.Wait(t.Context(), minute) // ends, one way or the other
				}
			})
		})
	}
}

func TestTypesOfMessagesAreCompared(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		s := w.comms[0].Send(1, 0, 0, call.Call{Kind: 1, Type: 3}, make([]byte, 4))
		err := w.comms[1].Recv(0, 0, 0, call.Call{Kind: 2, Type: 4}, make([]byte, 4)).Wait(t.Context(), minute)
		wantFailure(t, err, diagnosis.Mismatched, 0)
		must(t, s)
	})
}

func TestManyPairsDialEachOtherAtOnce(t *testing.T) {
	bubble(t, 8, func(t *testing.T, w *testWorld) {
		var ops []*Op
		for from := range 8 {
			for to := range 8 {
				ops = append(ops, w.send(from, to, 1, []byte{byte(from)}), w.recv(to, from, 1, make([]byte, 1)))
			}
		}
		must(t, ops...)
		for r, e := range w.ends {
			for _, p := range e.peers {
				if p.rank != r && p.state != stateUp {
					t.Errorf("rank %d has no stream to %d", r, p.rank)
				}
			}
		}
	})
}
