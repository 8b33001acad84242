package endpoint

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A stopped rank takes streams in, as its kernel does for it, and reads nothing.
type stopped struct{}

func (stopped) Admit(int) bool          { return true }
func (stopped) Connected(int, net.Conn) {}

// stuckWorld has ranks that all call collective 1, but for one that has stopped. Each waits for those that waits says.
// It returns what each waits with, once they have.
func stuckWorld(t *testing.T, size, victim int, timeout time.Duration, waits func(rank int) (from int)) (errs []error) {
	synctest.Test(t, func(t *testing.T) {
		network := transporttest.NewNetwork(size)
		members := make([]int, size)
		for r := range members {
			members[r] = r
		}
		network.Transport(victim).Serve(stopped{})
		ends, comms := make([]*Endpoint, size), make([]*Communicator, size)
		for r := range size {
			if r == victim {
				continue
			}
			ends[r] = New(network.Transport(r), r, size, Options{ConnectTimeout: time.Hour})
			comm, err := ends[r].Open(1, members)
			if err != nil {
				t.Fatal(err)
			}
			comms[r] = comm
		}
		errs = make([]error, size)
		for r, comm := range comms {
			if comm == nil {
				continue
			}
			go func() {
				if err := comm.Begin(1, call.Call{Kind: 1}, 0); err != nil {
					errs[r] = err
					return
				}
				errs[r] = comm.Recv(waits(r), 0, 1, call.Call{Kind: 1}, nil).Wait(t.Context(), timeout)
			}()
		}
		time.Sleep(timeout + time.Minute)
		synctest.Wait()
		for _, e := range ends {
			if e != nil {
				_ = e.Close()
			}
		}
		_ = network.Transport(victim).Close()
	})
	return errs
}

func TestTheRankThatStoppedIsNamed(t *testing.T) {
	testkit.WithoutRace(t)
	const victim = 57
	size := testkit.UnlessShort(200, 64)
	for name, waits := range map[string]func(r int) int{
		"ring": func(r int) int { return (r + size - 1) % size },
		"tree": func(r int) int { // the root waits for the victim, through those between
			if r == 0 {
				return victim
			}
			return (r - 1) / 2
		},
	} {
		for _, timeout := range []time.Duration{time.Second, minute} {
			t.Run(name+" "+timeout.String(), func(t *testing.T) {
				wrong := 0
				for r, err := range stuckWorld(t, size, victim, timeout, waits) {
					var f *diagnosis.Failure
					if r != victim && (!errors.As(err, &f) || f.Rank != victim) {
						if wrong++; wrong < 10 {
							t.Errorf("rank %d: %v", r, err)
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%d ranks", wrong)
				}
			})
		}
	}
}

// A rank whose connection is lost while it waits may have gone because of that, as others will because of it.
func TestAVictimsVictimSaysWhomItWaitedFor(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *testWorld) {
		r1 := w.recv(1, 2, 0, nil)
		go func() { _ = r1.Wait(t.Context(), 0) }()
		failed := make(chan error)
		r0 := w.recv(0, 1, 0, nil)
		go func() { failed <- r0.Wait(t.Context(), 0) }()
		time.Sleep(minute)
		w.kill(1)
		err := <-failed
		wantFailure(t, err, diagnosis.PeerFailed, 1)
		if err == nil || !strings.Contains(err.Error(), "; it waited for rank 2, which has not sent what Call(0) #1 waits for: ") {
			t.Errorf("got %v", err)
		}
	})
}

// Of ranks that do not come to a barrier, those that are held up by another are told apart from that.
func TestAMonitorTellsWhoIsHeldUp(t *testing.T) {
	bubble(t, 4, func(t *testing.T, w *testWorld) { // rank 3 sleeps, rank 2 waits for it, and rank 1 for that
		r2, r1 := w.recv(2, 3, 0, nil), w.recv(1, 2, 0, nil)
		go func() { _ = r2.Wait(t.Context(), 0) }()
		go func() { _ = r1.Wait(t.Context(), 0) }()
		time.Sleep(10 * time.Second)
		comm := w.comms[0]
		if err := comm.Begin(1, call.Call{Kind: 1}, 0); err != nil {
			t.Fatal(err)
		}
		op := comm.Recv(1, 0, 1, call.Call{Kind: 1}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		comm.Go(func() { comm.Monitor(ctx, 1, time.Second) })
		err := op.Wait(t.Context(), minute)
		wantFailure(t, err, diagnosis.Absent, 3)
		var f *diagnosis.Failure
		want := []diagnosis.Wait{{Rank: 1, For: 3, In: "Call(0) #1"}, {Rank: 2, For: 3, In: "Call(0) #1"}}
		if errors.As(err, &f); f == nil || !slices.Equal(f.Missing, []int{1, 2, 3}) || !slices.Equal(f.Waits, want) {
			t.Errorf("got %+v", f)
		}
	})
}
