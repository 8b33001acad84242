package endpoint

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
)

var enough = &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: 0, Text: "enough"}

// busyNetwork is a transport that takes half of reachTimeout to open a stream, and counts the streams being opened.
type busyNetwork struct {
	transport.Transport
	opening, most atomic.Int64
}

func (b *busyNetwork) Dial(ctx context.Context, rank int) (net.Conn, error) {
	b.most.Store(max(b.most.Load(), b.opening.Add(1)))
	defer b.opening.Add(-1)
	time.Sleep(reachTimeout / 2)
	return b.Transport.Dial(ctx, rank)
}

// A rank that fails notifies every member, connects to them for that, and does not connect to all of them at the same time.
func TestAFailureReachesAllMembers(t *testing.T) {
	const size = 3*mostReaching + 1
	synctest.Test(t, func(t *testing.T) {
		network, busy := transporttest.NewNetwork(size), &busyNetwork{}
		var ends []*Endpoint
		var comms []*Communicator
		var members []int
		for r := range size {
			members = append(members, r)
		}
		for r := range size {
			tr := network.Transport(r)
			if r == 0 {
				busy.Transport = tr
				tr = busy
			}
			e := New(tr, r, size, Options{ConnectTimeout: minute})
			comm, err := e.Open(1, members)
			if err != nil {
				t.Fatal(err)
			}
			ends, comms = append(ends, e), append(comms, comm)
		}
		start := time.Now()
		comms[0].Fail(enough)
		comms[0].AwaitNotified(minute)
		if d := time.Since(start); d != 3*reachTimeout/2 {
			t.Errorf("took %v, want three times as long as to open a stream", d)
		}
		if most := busy.most.Load(); most != mostReaching {
			t.Errorf("%d streams were being opened at a time, want %d", most, mostReaching)
		}
		synctest.Wait()
		for r, comm := range comms {
			wantFailure(t, comm.Err(), diagnosis.Aborted, 0)
			if up := streamsOf(ends[r]); r > 0 && up != 1 {
				t.Errorf("rank %d, which was notified, is connected to %d others, want only rank 0", r, up)
			}
		}
		for _, e := range ends {
			_ = e.Close()
		}
	})
}

func streamsOf(e *Endpoint) (up int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.peers {
		if p.state == stateUp {
			up++
		}
	}
	return up
}

// A member that has gone is not waited for.
func TestAMemberThatHasGoneIsNotNotified(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		w.ends[0].opt.News = minute
		w.kill(2)
		start := time.Now()
		w.comms[0].Fail(enough)
		w.comms[0].AwaitNotified(minute)
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of virtual time, want none", d)
		}
		synctest.Wait()
		wantFailure(t, w.comms[1].Err(), diagnosis.Aborted, 0)
	})
}

// A member that does not answer when it is to be notified of one group's failure is not gone: other groups go on with it.
func TestAMemberThatDoesNotAnswerIsNotGone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		a, b := w.subgroup(t, 7)
		w.ends[0].tr = &busyNetwork{Transport: slowTransport{make(chan error)}} // whose dials do not end
		w.comms[0].Fail(enough)
		w.comms[0].AwaitNotified(minute)
		synctest.Wait()
		w.ends[0].tr = w.trs[0]
		op := a.Recv(1, 0, 0, call.Call{}, nil)
		must(t, b.Send(0, 0, 0, call.Call{}, nil), op)
	})
}

// A second Abort, while the first one connects to members, adds nothing.
func TestASecondAbort(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		w.ends[0].tr = &busyNetwork{Transport: w.trs[0]}
		start := time.Now()
		w.comms[0].Abort(enough)
		w.comms[0].Abort(enough)
		w.comms[0].AwaitNotified(minute)
		if d := time.Since(start); d != reachTimeout/2 {
			t.Errorf("took %v, want as long as to open a stream", d)
		}
	})
}

// A rank that has been notified tells those who connect later.
func TestAFailureIsNewsToWhoConnectsLater(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		remote := *enough
		in := w.comms[1].lock()
		in.fail(&remote, 0)
		in.unlock()
		start := time.Now()
		wantFailure(t, w.recv(2, 1, 0, nil).Wait(t.Context(), minute), diagnosis.Aborted, 0)
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of virtual time, want none", d)
		}
	})
}

// Rank 1 loses rank 0, which is dead. If they had only just connected, others may know why rank 0 has died: rank 1 waits for their news.
func TestNewsOfADeath(t *testing.T) {
	const news = 2 * time.Second
	for name, c := range map[string]struct {
		connected time.Duration // how long, before rank 0 dies
		notified  time.Duration // when rank 2 notifies rank 1 after that
		want      diagnosis.Kind
		after     time.Duration
	}{
		"long connected":                {connected: 2 * news, notified: news / 2, want: diagnosis.PeerFailed, after: 0},
		"just connected":                {notified: 2 * news, want: diagnosis.PeerFailed, after: news},
		"just connected, there is news": {notified: news / 2, want: diagnosis.Aborted, after: news / 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, w *testWorld) {
				w.ends[1].opt.News = news
				w.ends[1].opt.Liveness = func(int) diagnosis.Liveness { return diagnosis.Dead }
				must(t, w.send(1, 0, 0, nil), w.recv(0, 1, 0, nil), w.send(1, 2, 0, nil), w.recv(2, 1, 0, nil))
				op := w.recv(1, 0, 0, nil)
				time.Sleep(c.connected)
				synctest.Wait()
				start := time.Now()
				w.kill(0)
				time.AfterFunc(c.notified, func() {
					remote := *enough
					in := w.comms[2].lock()
					in.fail(&remote, 0)
					in.unlock()
				})
				wantFailure(t, op.Wait(t.Context(), minute), c.want, 0)
				if d := time.Since(start); d != c.after {
					t.Errorf("took %v, want %v", d, c.after)
				}
				time.Sleep(minute)
			})
		})
	}
}

// refused is a transport whose calls are all refused.
type refused struct{ transport.Transport }

func (refused) Dial(context.Context, int) (net.Conn, error) { return nil, syscall.ECONNREFUSED }

// A rank that cannot reach another one takes in that one's own stream, while it waits for news.
func TestWhoCannotBeReachedMayConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, comms := pair(t, func(tr transport.Transport) transport.Transport { return refused{tr} }, Options{News: time.Second})
		op := comms[0].Recv(1, 0, 0, call.Call{}, nil)
		synctest.Wait()
		comms[1].Fail(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: 1, Text: "enough"})
		wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Aborted, 1)
		for _, e := range ends {
			_ = e.Close()
		}
	})
}
