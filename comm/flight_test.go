package comm

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
)

func TestAFlightRemembersWhatWasCalled(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *testWorld) {
		w.run(func(ctx context.Context, g *Group) error {
			if err := AllReduce(ctx, g, make([]float32, 8), Sum); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return Broadcast(ctx, g, make([]int16, 100), 1)
		})
		w.run(func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				return Send(ctx, g, []int64{1, 2}, 1, 7)
			}
			_, err := Recv(ctx, g, make([]int64, 5), AnySource, AnyTag)
			return err
		})
		pending := IBarrier(w.groups[1])
		time.Sleep(3 * time.Second)

		f := w.groups[1].Flight()
		if f.Rank != 1 || !slices.Equal(f.Group, []int{0, 1}) || f.Failed != "" || len(f.Collectives) != 3 || len(f.Transfers) != 1 {
			t.Fatalf("got %+v", f)
		}
		for i, want := range []FlightCall{
			{Seq: 1, Op: "AllReduce", Call: "AllReduce(float32 × 8, Sum)", Type: "float32", Count: 8, State: "done", Sent: 32, Received: 32},
			{Seq: 2, Op: "Broadcast", Call: "Broadcast(int16 × 100, from 1)", Type: "int16", Count: 100, State: "done", Sent: 200},
			{Seq: 3, Op: "Barrier", Call: "Barrier", State: "under way", Seconds: 3},
		} {
			want.Began = f.Collectives[i].Began
			if got := f.Collectives[i]; got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		}
		if d := f.Collectives[1].Began.Sub(f.Collectives[0].Began); d != time.Second {
			t.Errorf("the second began %v after the first", d)
		}
		if got := f.Transfers[0]; got.Seq != 1 || got.Call != "Recv(int64)" || *got.Peer != AnySource || *got.Tag != AnyTag || got.Received != 16 {
			t.Errorf("got %+v", got)
		}
		if want := (FlightWait{For: 0, In: "Barrier #3"}); len(f.Waits) != 1 || f.Waits[0] != want {
			t.Errorf("it waits for %v, want %v", f.Waits, want)
		}
		w.groups[0].Abort(context.Canceled)
		<-pending.Done()
		if f = w.groups[1].Flight(); f.Failed == "" || f.Collectives[2].State != "failed" || f.Collectives[2].Error == "" || f.Waits != nil {
			t.Errorf("after the failure: %+v", f)
		}
	})
}

func TestAFlightForgetsTheOldest(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *testWorld) {
		w.run(func(ctx context.Context, g *Group) error {
			for range 100 {
				if err := Barrier(ctx, g); err != nil {
					return err
				}
				if _, ok, err := TryProbe(g, 0); ok || err != nil {
					t.Errorf("probed %v, %v", ok, err)
				}
			}
			return Send(ctx, g, []int{1}, 0)
		})
		f := w.groups[0].Flight()
		if n := len(f.Collectives); n != 64 || f.Collectives[0].Seq != 37 || f.Collectives[n-1].Seq != 100 {
			t.Errorf("remembers %d collectives, from %d", n, f.Collectives[0].Seq)
		}
		if len(f.Transfers) != 1 || f.Transfers[0].Op != "Send" { // probes do not push out what matters
			t.Errorf("remembers %+v", f.Transfers)
		}
	})
}

func TestWriteFlightWritesEveryOpenGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := len(process.Groups())
		w := newTestWorld(t, transports["mem"](t, 2))
		w.run(func(ctx context.Context, g *Group) error {
			_, err := NewGroup(ctx, g, []int{1, 0})
			return err
		})
		var b bytes.Buffer
		if err := WriteFlight(&b); err != nil {
			t.Fatal(err)
		}
		written := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(written) != before+4 {
			t.Errorf("wrote %d lines, want %d", len(written), before+4)
		}
		for _, line := range written {
			var f Flight
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		w.close()
		if n := len(process.Groups()); n != before {
			t.Errorf("%d groups are open after the world is closed, want %d", n, before)
		}
	})
}

func TestSIGQUITPrintsFlightsAndStacks(t *testing.T) {
	ps := startProcesses(t, "hang", 2)
	for r, p := range ps {
		if line, err := p.stdout.ReadString('\n'); line != "running\n" {
			t.Fatalf("rank %d says %q, %v", r, line, err)
		}
	}
	if err := ps[0].cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = ps[0].cmd.Wait()
	text := ps[0].stderr.String()
	flight, rest, _ := strings.Cut(text, "\n")
	var f Flight
	if err := json.Unmarshal([]byte(flight), &f); err != nil || len(f.Collectives) > 1 {
		t.Errorf("the flight is %q, %v", flight, err)
	}
	if !strings.HasPrefix(rest, "SIGQUIT: quit") || !strings.Contains(rest, "goroutine 1 ") || ps[0].cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("it ended with %v and said %q", ps[0].cmd.ProcessState, text)
	}
}

func TestRememberingAllocatesNothing(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 1))
	defer w.close()
	g := w.groups[0]
	seq, call := uint64(0), call.Call{Kind: call.KindBarrier}
	if n := testing.AllocsPerRun(100, func() {
		seq++
		if err := g.core.Comm.Begin(seq, call, 0); err != nil {
			t.Error(err)
		}
		g.core.Comm.End(seq, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
