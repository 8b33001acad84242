package endpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A ring of ranks in which every two neighbours have a group of their own, so that nobody shares one with more than two others.
type ring struct {
	trs   []*transporttest.MortalTransport
	ends  []*Endpoint
	comms [][2]*Communicator // with the rank before, and with the one after
}

func newRing(t *testing.T, size int) *ring {
	w, network := &ring{comms: make([][2]*Communicator, size)}, transporttest.NewNetwork(size)
	for r := range size {
		w.trs = append(w.trs, transporttest.Mortal(network.Transport(r)))
		w.ends = append(w.ends, New(w.trs[r], r, size, Options{
			ConnectTimeout: minute, Liveness: func(int) diagnosis.Liveness { return diagnosis.Dead },
		}))
	}
	for r := range size {
		for side, other := range []int{(r + size - 1) % size, (r + 1) % size} {
			first := other
			if side == 1 {
				first = r
			}
			comm, err := w.ends[r].Open(uint64(100+first), []int{min(r, other), max(r, other)})
			if err != nil {
				t.Fatal(err)
			}
			w.comms[r][side] = comm
		}
	}
	return w
}

// await lets rank r wait for the one after it, until that fails.
func (w *ring) await(t *testing.T, r int, timeout time.Duration) error {
	return w.comms[r][1].Recv((r+1)%len(w.ends), 0, 0, call.Call{}, nil).Wait(t.Context(), timeout)
}

// flush gives rank r the time that a program has before it ends because of an error.
func (w *ring) flush(r int) {
	for _, comm := range w.comms[r] {
		comm.AwaitNotified(100 * time.Millisecond)
	}
}

// firsts are how the first rank may fail: what the others are to say of it.
var firsts = map[string]struct {
	how  func(w *ring, r int)
	says string
}{
	"dies":   {func(w *ring, r int) { w.trs[r].Kill() }, "died"},
	"leaves": {func(w *ring, r int) { _ = w.ends[r].Close() }, "has left (closed its world)"},
	"closes its groups": {func(w *ring, r int) {
		w.comms[r][0].Close()
		w.comms[r][1].Close()
	}, "has left (closed the group)"},
	"aborts": {func(w *ring, r int) {
		for _, comm := range w.comms[r] {
			comm.Fail(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: r, Text: "enough"})
		}
	}, "enough"},
	"stops": {func(w *ring, r int) { w.trs[r].Stop() }, ""}, // which it may have done before it was asked for the last time
}

// ends are how the others end because of that.
var ends = map[string]func(w *ring, r int){
	"dies":   func(w *ring, r int) { w.trs[r].Kill() },
	"leaves": func(w *ring, r int) { _ = w.ends[r].Close() },
	"closes its groups and dies": func(w *ring, r int) {
		w.comms[r][0].Close()
		w.comms[r][1].Close()
		time.Sleep(time.Millisecond)
		w.trs[r].Kill()
	},
}

// A rank that fails ends, so that others fail, that have no group in common with it, and so on around the ring: all of them say who
// failed first, and how.
func TestTheFirstToFailIsNamedAcrossGroups(t *testing.T) {
	const size = 16
	tries := testkit.UnlessShort(20, 3)
	for how, first := range firsts {
		for end, ended := range ends {
			t.Run(how+", then each "+end, func(t *testing.T) {
				for seed := range uint64(tries) {
					rng := rand.New(rand.NewPCG(seed, 3))
					victim, pause := rng.IntN(size), time.Duration(rng.IntN(3))*time.Second
					synctest.Test(t, func(t *testing.T) {
						w := newRing(t, size)
						errs := make([]error, size)
						var all sync.WaitGroup
						for r := range size {
							if r == victim {
								continue
							}
							all.Go(func() {
								errs[r] = w.await(t, r, time.Duration(10+r)*time.Second)
								w.flush(r)
								ended(w, r)
							})
						}
						time.Sleep(pause)
						synctest.Wait()
						first.how(w, victim)
						all.Wait()
						w.trs[victim].Kill()
						for r, err := range errs {
							var f *diagnosis.Failure
							if r != victim && (!errors.As(err, &f) || f.Rank != victim || !strings.Contains(f.Text, first.says)) {
								t.Errorf("seed %d, rank %d of a ring in which rank %d failed first: %v", seed, r, victim, err)
							}
						}
						for _, e := range w.ends {
							_ = e.Close()
						}
					})
				}
			})
		}
	}
}

// Who goes on after a failure, and dies much later, has died of something else.
func TestAnOldFailureIsNoCause(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{5 * time.Second, 0}, {20 * time.Second, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newRing(t, 4)
			waits := make(chan error)
			go func() { waits <- w.comms[2][0].Recv(1, 0, 0, call.Call{}, nil).Wait(t.Context(), 0) }()
			go func() { _ = w.comms[1][0].Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), 0) }()
			synctest.Wait()
			w.trs[0].Kill()
			time.Sleep(c.after)
			w.trs[1].Kill()
			err := <-waits
			wantFailure(t, err, diagnosis.PeerFailed, c.want)
			for _, e := range w.ends {
				_ = e.Close()
			}
		})
	}
}

// What a peer says of why it failed is believed of others only.
func TestNoCauseOfItself(t *testing.T) {
	e := New(slowTransport{make(chan error)}, 0, 4, Options{})
	defer e.Close()
	in := e.lock()
	defer in.unlock() // before Close
	gone := &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: 1, Text: "died"}
	for _, c := range []struct {
		rank int
		want string
	}{{1, "rank 1: died"}, {3, "rank 3: odd"}} {
		p := in.newPeer(1)
		in.receiveCause(p, &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: c.rank, Text: "odd"})
		if got := p.cause.RootOf(gone, time.Now()); got.Error() != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

// That this rank has no descriptor left is no other's fault.
func TestNoDescriptorLeft(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE} {
		tr := slowTransport{make(chan error, 1)}
		tr.result <- fmt.Errorf("dial tcp: %w", err)
		e := New(tr, 0, 3, Options{})
		comm, openErr := e.Open(1, []int{0, 1, 2})
		if openErr != nil {
			t.Fatal(openErr)
		}
		got := comm.Send(1, 0, 0, call.Call{}, nil).Wait(t.Context(), minute)
		wantFailure(t, got, diagnosis.Aborted, 0)
		if want := "rank 0: it has no descriptor left to reach rank 1: "; got == nil || !strings.HasPrefix(got.Error(), want) {
			t.Errorf("got %v, want %s", got, want)
		}
		_ = e.Close()
	}
}

func TestCausesAreTold(t *testing.T) {
	f := &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: 2, Text: strings.Repeat("a", 2*wire.FailureLimit), Missing: slices.Repeat([]int{1}, wire.FailureLimit)}
	h := wire.Header{Kind: wire.Cause, Size: uint64(len(f.Encode(0, wire.FailureLimit)))}
	if _, err := wire.Parse(h.Append(nil)); err != nil {
		t.Error(err)
	}
	h.Size = wire.FailureLimit + 1
	if _, err := wire.Parse(h.Append(nil)); err == nil {
		t.Error("a longer one is taken")
	}
}
