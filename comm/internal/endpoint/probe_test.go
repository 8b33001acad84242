package endpoint

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

func wantSeen(t *testing.T, probe *Op, source, tag, bytes int) {
	t.Helper()
	must(t, probe)
	if s, g, n := probe.Received(); s != source || g != tag || n != bytes || probe.Type() != 7 {
		t.Errorf("saw %d bytes of type %d from %d with tag %d, want %d from %d with tag %d", n, probe.Type(), s, g, bytes, source, tag)
	}
}

func TestAProbeLeavesTheMessageWhereItIs(t *testing.T) {
	for _, size := range []int{3, wire.EagerLimit + 1} {
		bubble(t, 2, func(t *testing.T, w *testWorld) {
			c := call.Call{Type: 7}
			for _, from := range []int{0, 1} { // the peer and oneself
				first := w.comms[1].Probe(matching.AnySource, matching.AnyTag, call.Call{})
				elsewhere := w.comms[1].Probe(from, 6, call.Call{})
				synctest.Wait()
				out, in := pattern(size, 1), make([]byte, size)
				s := w.comms[from].Send(1, 5, 0, c, out)
				wantSeen(t, first, from, 5, size)
				wantSeen(t, w.comms[1].Probe(from, 5, call.Call{}), from, 5, size)
				if elsewhere.Ended() {
					t.Error("a probe for another tag has ended")
				}
				must(t, s, w.comms[1].Recv(from, 5, 0, c, in))
				if !bytes.Equal(in, out) {
					t.Error("the message changed")
				}
				if !elsewhere.Withdraw() || elsewhere.Withdraw() {
					t.Error("a probe that waits could not be withdrawn, or twice")
				}
			}
		})
	}
}

func TestAProbeSeesOnlyWhatNoReceiveTakes(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		c := call.Call{Type: 7}
		probe := w.comms[1].Probe(0, 0, call.Call{})
		r := w.comms[1].Recv(0, 0, 0, c, make([]byte, 1))
		must(t, w.comms[0].Send(1, 0, 0, c, []byte{1}), r)
		synctest.Wait()
		if probe.Ended() {
			t.Error("saw what an older receive took")
		}
		must(t, w.comms[0].Send(1, 0, 0, c, []byte{1, 2}))
		wantSeen(t, probe, 0, 0, 2)
	})
}

func TestAProbeOfWhoIsGoneFails(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		must(t, w.comms[0].Send(1, 4, 0, call.Call{Type: 7}, []byte{1}), w.send(1, 0, 0, nil), w.recv(0, 1, 0, nil))
		probe := w.comms[1].Probe(0, 5, call.Call{})
		synctest.Wait()
		w.kill(0)
		wantFailure(t, probe.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		wantFailure(t, w.comms[1].Probe(0, 5, call.Call{}).Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		wantSeen(t, w.comms[1].Probe(0, 4, call.Call{}), 0, 4, 1) // what has arrived can still be received
	})
}

// The steps of a collective know how long their messages are.
func TestACollectivesMessageOfAnotherLengthIsTold(t *testing.T) {
	for _, sizes := range [][2]int{{3, 4}, {4, 3}, {0, 1}, {wire.EagerLimit + 9, 3}, {3, wire.EagerLimit + 9}} {
		bubble(t, 2, func(t *testing.T, w *testWorld) {
			for _, comm := range w.comms {
				if err := comm.Begin(1, call.Call{Kind: 1}, 0); err != nil {
					t.Fatal(err)
				}
			}
			in := pattern(sizes[1], 3)
			s := w.comms[0].Send(1, 0, 1, call.Call{Kind: 1}, make([]byte, sizes[0]))
			err := w.comms[1].Recv(0, 0, 1, call.Call{Kind: 1}, in).Wait(t.Context(), minute)
			wantFailure(t, err, diagnosis.Mismatched, 0)
			var f *diagnosis.Failure
			if !errors.As(err, &f) || len(f.Calls) != 2 || f.Calls[0].Bytes != sizes[1] || f.Calls[1].Bytes != sizes[0] {
				t.Errorf("got %+v", f)
			}
			if !bytes.Equal(in, pattern(sizes[1], 3)) {
				t.Error("the buffer was written to")
			}
			must(t, s)
		})
	}
}

func TestCloseWaitsForWhatTheLanesStarted(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *testWorld) {
		var ran atomic.Int32
		waiting := w.recv(0, 0, 0, nil)
		w.comms[0].Go(func() {
			<-waiting.Done() // until Close ends it
			ran.Add(1)
		})
		if err := w.ends[0].Close(); err != nil || ran.Load() != 1 {
			t.Errorf("closed with %v while a goroutine of a comm was running", err)
		}
		if w.comms[0].Go(func() { ran.Add(1) }); ran.Load() != 2 {
			t.Error("Go after Close did not run the function")
		}
	})
}

func TestReceivingIntoNewMemory(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		for _, n := range []int{0, 10, wire.EagerLimit + 1} {
			w.send(0, 1, 5, bytes.Repeat([]byte{7}, n))
			op := w.comms[1].RecvNew(matching.AnySource, 5, call.Call{}, wire.EagerLimit+1)
			must(t, op)
			if got := op.Message(); !bytes.Equal(got, bytes.Repeat([]byte{7}, n)) {
				t.Errorf("got %d bytes, want %d", len(got), n)
			}
		}
		op := w.comms[1].RecvNew(0, 5, call.Call{}, 9)
		w.send(0, 1, 5, make([]byte, 10))
		var long *matching.TruncateError
		if err := op.Wait(t.Context(), minute); !errors.As(err, &long) || long.Got != 10 {
			t.Errorf("got %v, want a TruncateError", err)
		}
		op = w.comms[1].RecvNew(0, 5, call.Call{Type: 3}, 9)
		w.send(0, 1, 5, make([]byte, 9))
		wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Mismatched, 0)
	})
}
