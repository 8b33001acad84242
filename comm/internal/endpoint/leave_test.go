package endpoint

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
)

// subgroup opens a comm of ranks 0 and 1 on both.
func (w *testWorld) subgroup(t *testing.T, id uint64) (a, b *Communicator) {
	t.Helper()
	var comms [2]*Communicator
	for r := range comms {
		comm, err := w.ends[r].Open(id, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		comms[r] = comm
	}
	return comms[0], comms[1]
}

func TestAClosedCommunicatorIsNewsToWhoNeedsIt(t *testing.T) {
	for name, need := range map[string]func(comm *Communicator) *Op{
		"send":             func(comm *Communicator) *Op { return comm.Send(1, 0, 0, call.Call{}, make([]byte, 1<<20)) },
		"receive":          func(comm *Communicator) *Op { return comm.Recv(1, 0, 0, call.Call{}, nil) },
		"receive from any": func(comm *Communicator) *Op { return comm.Recv(matching.AnySource, 0, 0, call.Call{}, nil) },
		"probe":            func(comm *Communicator) *Op { return comm.Probe(1, 0, call.Call{}) },
	} {
		for _, when := range []string{"before it connects", "before it asks", "while it waits"} {
			t.Run(name+" "+when, func(t *testing.T) {
				bubble(t, 3, func(t *testing.T, w *testWorld) {
					if when != "before it connects" {
						must(t, w.send(0, 1, 0, nil), w.recv(1, 0, 0, nil))
					}
					a, b := w.subgroup(t, 7)
					var op *Op
					if when == "while it waits" {
						op = need(a)
						synctest.Wait()
					}
					b.Close()
					synctest.Wait()
					if op == nil {
						op = need(a)
					}
					start := time.Now()
					wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Closed, 1)
					if d := time.Since(start); d > 0 {
						t.Errorf("took %v", d)
					}
					must(t, w.send(0, 1, 0, nil), w.recv(1, 0, 0, nil)) // the world goes on
					a.Close()
				})
			})
		}
	}
}

// Who closes a comm because it has failed says so to whoever connects later and still needs it.
func TestWhyACommunicatorWasClosedIsNews(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		a, b := w.subgroup(t, 7)
		in := b.lock()
		in.fail(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: 1, Text: "gave up"}, 1) // as if another rank had told: it connects to nobody
		in.unlock()
		b.Close()
		wantFailure(t, a.Recv(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.Aborted, 1)
	})
}

// handover is how long a lateHandover, a transport, keeps the streams that it has admitted.
const handover = time.Second

type lateHandover struct{ transport.Transport }

type lateHandler struct{ transport.Handler }

func (l lateHandover) Serve(h transport.Handler) { l.Transport.Serve(lateHandler{h}) }

func (l lateHandler) Connected(rank int, conn net.Conn) {
	time.Sleep(handover)
	l.Handler.Connected(rank, conn)
}

// pair returns the ends and communicators of two ranks, of which the first one has the transport that wrap returns.
func pair(t *testing.T, wrap func(transport.Transport) transport.Transport, opt Options) (ends [2]*Endpoint, comms [2]*Communicator) {
	network := transporttest.NewNetwork(2)
	for r, tr := range []transport.Transport{wrap(network.Transport(0)), network.Transport(1)} {
		ends[r] = New(tr, r, 2, opt)
		comm, err := ends[r].Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		comms[r] = comm
	}
	return ends, comms
}

// Who connects while this rank leaves gets its goodbye.
func TestGoodbyeToWhoIsConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, comms := pair(t, func(tr transport.Transport) transport.Transport { return lateHandover{tr} }, Options{ConnectTimeout: minute})
		op := comms[1].Recv(0, 0, 0, call.Call{}, nil)
		time.Sleep(handover / 2)
		if err := ends[0].Close(); err != nil {
			t.Error(err)
		}
		wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Closed, 0)
		if err := ends[1].Close(); err != nil {
			t.Error(err)
		}
	})
}

// lateDial is a transport that takes its time to open streams.
type lateDial struct{ transport.Transport }

func (l lateDial) Dial(ctx context.Context, rank int) (net.Conn, error) {
	time.Sleep(2 * reachTimeout)
	return l.Transport.Dial(ctx, rank)
}

// A message for which a stream is still being opened is not lost if its sender leaves, whoever opens the stream.
func TestAMessageBeforeThereIsAStream(t *testing.T) {
	for from := range 2 {
		for _, when := range []string{"before", "at the same time", "after"} { // the receive, which opens a stream, too
			synctest.Test(t, func(t *testing.T) {
				ends, comms := pair(t, func(tr transport.Transport) transport.Transport { return lateDial{tr} }, Options{ConnectTimeout: minute})
				to, in := 1-from, make([]byte, 1)
				recv := func() *Op { return comms[to].Recv(from, 0, 0, call.Call{}, in) }
				var r *Op
				switch when {
				case "before":
					r = recv()
					time.Sleep(reachTimeout)
				case "at the same time":
					r = recv()
				}
				comms[from].Send(to, 0, 0, call.Call{}, []byte{7})
				if err := ends[from].Close(); err != nil {
					t.Error(err)
				}
				if r == nil {
					r = recv()
				}
				if must(t, r); in[0] != 7 {
					t.Errorf("from rank %d, received %s: got %d", from, when, in[0])
				}
				if err := ends[to].Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestAShortSendToAClosedCommunicator(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		a, b := w.subgroup(t, 7)
		b.Close()
		_ = a.Send(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute) // may be written before the news comes
		synctest.Wait()
		wantFailure(t, a.Send(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.Closed, 1)
	})
}

// A long message that has been announced does not come after its sender has closed the comm.
func TestAMessageAnnouncedBeforeLeaving(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		a, b := w.subgroup(t, 7)
		first := b.Send(0, 0, 0, call.Call{}, make([]byte, 1<<20))
		b.Send(0, 0, 0, call.Call{}, make([]byte, 1<<20))
		synctest.Wait()
		asked := a.Recv(1, 0, 0, call.Call{}, make([]byte, 1<<20))
		b.Close() // before it knows that the first is wanted
		wantFailure(t, asked.Wait(t.Context(), minute), diagnosis.Closed, 1)
		wantFailure(t, a.Recv(1, 0, 0, call.Call{}, make([]byte, 1<<20)).Wait(t.Context(), minute), diagnosis.Closed, 1)
		if err := first.Wait(t.Context(), minute); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestACommunicatorClosedBeforeItsMemberHasOpenedIt(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		must(t, w.send(0, 1, 0, nil), w.recv(1, 0, 0, nil))
		b, err := w.ends[1].Open(7, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		must(t, b.Send(0, 0, 0, call.Call{}, nil))
		b.Close()
		synctest.Wait()
		a, err := w.ends[0].Open(7, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		must(t, a.Recv(1, 0, 0, call.Call{}, nil)) // what it sent before it left
		wantFailure(t, a.Recv(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.Closed, 1)
		if err := a.Err(); err != nil {
			t.Errorf("the comm has failed: %v", err)
		}
	})
}

func TestWhoHasLeftACommunicatorMayDie(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		must(t, w.send(1, 0, 0, nil), w.recv(0, 1, 0, nil))
		var comms [3]*Communicator
		for r := range comms {
			comm, err := w.ends[r].Open(7, []int{0, 1, 2})
			if err != nil {
				t.Fatal(err)
			}
			comms[r] = comm
		}
		waiting := comms[0].Recv(matching.AnySource, 0, 0, call.Call{}, nil)
		comms[1].Close()
		synctest.Wait()
		w.kill(1)
		wantFailure(t, w.recv(0, 1, 0, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 1)
		must(t, comms[2].Send(0, 0, 0, call.Call{}, nil), waiting)
	})
}

// What an endpoint remembers of comms that are over is bounded.
func TestCommunicatorsLeaveNothingBehind(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		must(t, w.send(0, 1, 0, nil), w.recv(1, 0, 0, nil))
		for id := range uint64(3 * mostRetired) {
			a, b := w.subgroup(t, 100+id)
			must(t, a.Send(1, 0, 0, call.Call{}, nil), b.Recv(0, 0, 0, call.Call{}, nil))
			a.Close()
			b.Close()
		}
		synctest.Wait()
		for r, e := range w.ends {
			if len(e.comms) != 1 || len(e.early) != 0 || len(e.retired) > mostRetired || len(e.sends) != 0 {
				t.Errorf("rank %d remembers %d comms, %d early, %d retired, %d sends",
					r, len(e.comms), len(e.early), len(e.retired), len(e.sends))
			}
		}
	})
}

// A rank that makes a group learns that others have made it before, and that it has failed there.
func TestAGroupThatHasFailedBeforeItIsOpened(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		must(t, w.send(0, 1, 5, nil), w.recv(1, 0, 5, nil)) // they are connected
		theirs, err := w.ends[0].Open(2, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		theirs.Fail(errors.New("no luck"))
		synctest.Wait()
		late := w.ends[1]
		if p := late.peers[0]; p.earlyFailures != 1 || len(late.early[2]) != 1 {
			t.Errorf("%d failures and %d messages are kept", p.earlyFailures, len(late.early[2]))
		}
		mine, err := late.Open(2, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		wantFailure(t, mine.Err(), diagnosis.Aborted, 0)
		if p := late.peers[0]; p.earlyFailures != 0 || len(late.early) != 0 {
			t.Errorf("%d failures and %d groups are left", p.earlyFailures, len(late.early))
		}
	})
}
