package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/env/testing/testkit"
)

// inBubble runs body with a world in virtual time. Whatever its ranks do, they end and leave nothing.
func inBubble(t *testing.T, size int, body func(t *testing.T, w *testWorld)) {
	t.Helper()
	testkit.Once(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTestWorld(t, transports["mem"](t, size))
		defer w.close()
		body(t, w)
	})
}

func wantPeerError(t *testing.T, rank int, err error, culprit int, text string) {
	t.Helper()
	var peer *PeerError
	if !errors.As(err, &peer) || peer.Rank != culprit || !strings.Contains(err.Error(), text) {
		t.Errorf("rank %d got %v, want a PeerError about rank %d: %s", rank, err, culprit, text)
	}
}

// Each rank waits for another that waits, but for one: all name that one.
func TestAllNameTheRankThatDoesNotCall(t *testing.T) {
	const culprit = 5
	for name, c := range map[string]struct {
		first func(ctx context.Context, g *Group) error
		text  string
	}{
		"nothing before":   {nil, "has not called AllReduce #1: it has called nothing on the group"},
		"barrier before":   {Barrier, "has not called AllReduce #2: its last call was Barrier #1, which ended 1m0s ago"},
		"transfers before": {exchange, "has not called AllReduce #1: its last call was Recv #2, which ended 1m0s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 8, func(t *testing.T, w *testWorld) {
				start := time.Now()
				for r, err := range w.results(func(ctx context.Context, g *Group) error {
					if c.first != nil {
						if err := c.first(ctx, g); err != nil {
							return err
						}
					}
					if g.Rank() == culprit {
						return nil
					}
					return AllReduce(ctx, g, make([]float32, 100_000), Sum) // in a ring
				}) {
					if r != culprit {
						wantPeerError(t, r, err, culprit, "timed out after 1m0s: "+c.text)
					}
				}
				if d := time.Since(start); d != time.Minute {
					t.Errorf("took %v, want the timeout of %v", d, time.Minute)
				}
			})
		})
	}
}

// With more ranks in a row than there are questions in the time, the reason still gets to the last.
func TestAReasonTravelsFar(t *testing.T) {
	testkit.WithoutRace(t)
	const size, culprit = 60, 30
	inBubble(t, size, func(t *testing.T, w *testWorld) {
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			g.core.Timeout = time.Second
			if g.Rank() == culprit {
				return nil
			}
			_, err := Recv(ctx, g, []int{0}, (g.Rank()+size-1)%size)
			if err != nil {
				time.Sleep(time.Second) // so that nobody's wait ends before another's
			}
			return err
		}) {
			if r != culprit {
				wantPeerError(t, r, err, culprit, "timed out after 1s: has not sent what Recv #1 waits for")
			}
		}
	})
}

// exchange sends to the next rank and receives from the one before.
func exchange(ctx context.Context, g *Group) error {
	n := g.Size()
	out := ISend(g, []int{1}, (g.Rank()+1)%n)
	_, err := Recv(ctx, g, []int{0}, (g.Rank()+n-1)%n)
	return errors.Join(err, out.Wait(ctx))
}

func TestWhoIsInAnotherGroupIsSaidToBe(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *testWorld) {
		errs := w.results(func(ctx context.Context, g *Group) error {
			pair, err := NewGroup(ctx, g, []int{1, 2}, WithTimeout(time.Hour))
			if err != nil || g.Rank() == 2 {
				return err
			}
			if g.Rank() == 1 {
				return Barrier(ctx, pair) // for which rank 2 does not come
			}
			return Send(ctx, g, make([]int, 1<<20), 1)
		})
		wantPeerError(t, 0, errs[0], 2, "has not called Barrier #1")
	})
}

func TestDeadlocks(t *testing.T) {
	big := make([]byte, 1<<20)
	for name, c := range map[string]struct {
		size, in int
		program  func(ctx context.Context, g *Group) error
		call     string
	}{
		"receives": {2, 2, func(ctx context.Context, g *Group) error {
			_, err := Recv(ctx, g, []int{0}, 1-g.Rank())
			return err
		}, "Recv #1"},
		"long sends in a ring": {5, 5, func(ctx context.Context, g *Group) error {
			return Send(ctx, g, big, (g.Rank()+1)%5)
		}, "Send #1"},
		"two of three": {3, 2, func(ctx context.Context, g *Group) error {
			_, err := Recv(ctx, g, []int{0}, []int{1, 2, 1}[g.Rank()])
			return err
		}, "Recv #1"},
		"a collective and a receive": {2, 2, func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				return Barrier(ctx, g)
			}
			_, err := Recv(ctx, g, []int{0}, 0)
			return err
		}, "Barrier #1"},
		"groups in different orders": {2, 2, func(ctx context.Context, g *Group) error {
			other, err := NewGroup(ctx, g, []int{0, 1})
			if err != nil {
				return err
			}
			if g.Rank() == 0 {
				g = other
			}
			return Barrier(ctx, g)
		}, "Barrier #2"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.size, func(t *testing.T, w *testWorld) {
				found := 0
				for r, err := range w.results(c.program) {
					var d *DeadlockError
					if !errors.As(err, &d) || len(d.Waits) != c.in || !errors.Is(err, ErrTimeout) || ExitCode(err) != 2 {
						t.Errorf("rank %d got %v, want a DeadlockError with %d ranks", r, err, c.in)
						continue
					}
					for i, wait := range d.Waits {
						if wait.For != d.Waits[(i+1)%c.in].Rank {
							t.Errorf("rank %d: %v is no circle", r, d.Waits)
						}
						if wait.In == c.call {
							found++
						}
					}
				}
				if found == 0 {
					t.Errorf("%s is not named", c.call)
				}
			})
		})
	}
}

func TestReceivesThatNothingFits(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *testWorld) {
		errs := w.results(func(ctx context.Context, g *Group) error {
			switch g.Rank() {
			case 0:
				_, err := Recv(ctx, g, []int{0}, 1, 7)
				return err
			case 1:
				return Send(ctx, g, []int{1}, 0, 8)
			}
			_, err := Recv(ctx, g, []int{0}, AnySource)
			return err
		})
		wantPeerError(t, 0, errs[0], 1, "has not sent what Recv #1 (tag 7; an unreceived message from rank 1 has tag 8) waits for: "+
			"its last call was Send #1, which ended 1m0s ago")
		if err := errs[2]; !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "nobody has sent what Recv #1 waits for") {
			t.Errorf("rank 2 got %v", err)
		}
	})
}

// A receive whose tag nobody sends says which tag has come instead, whatever ends it.
func TestTagsThatNobodySends(t *testing.T) {
	const tags = "Recv #1 (tag 5; an unreceived message from rank 0 has tag 7)"
	recv := func(src int) func(ctx context.Context, g *Group) error {
		return func(ctx context.Context, g *Group) error {
			_, err := Recv(ctx, g, []int{0}, src, 5)
			return err
		}
	}
	close := func(_ context.Context, g *Group) error { return g.Close() }
	for name, c := range map[string]struct {
		length       int // of the message with tag 7
		sender, wait func(ctx context.Context, g *Group) error
		text         string
	}{
		"the sender waits, too":                 {1, recv(1), recv(0), "rank 1 waits for rank 0 in " + tags},
		"the sender waits until it is received": {1 << 20, nil, recv(0), "rank 1 waits for rank 0 in " + tags},
		"the sender leaves":                     {1, close, recv(0), ", and has not sent what " + tags + " waits for"},
		"the sender leaves before": {1, close, func(ctx context.Context, g *Group) error {
			time.Sleep(time.Second)
			return recv(0)(ctx, g)
		}, ", and has not sent what " + tags + " waits for"},
		"any source":       {1, nil, recv(AnySource), "comm: Recv #1 from any rank: timed out after 1m0s: nobody has sent what " + tags + " waits for"},
		"any source, left": {1, close, recv(AnySource), ", and has not sent what " + tags + " waits for"},
		"a probe": {1, close, func(ctx context.Context, g *Group) error {
			_, err := Probe(ctx, g, 0, 5)
			return err
		}, ", and has not sent what " + strings.Replace(tags, "Recv", "Probe", 1) + " waits for"},
		"no message": {0, close, recv(0), ", and has not sent what Recv #1 (tag 5) waits for"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *testWorld) {
				err := w.results(func(ctx context.Context, g *Group) error {
					if g.Rank() == 1 {
						return c.wait(ctx, g)
					}
					if c.length > 0 {
						if err := Send(ctx, g, make([]int, c.length), 1, 7); err != nil {
							return err
						}
					}
					if c.sender != nil {
						return c.sender(ctx, g)
					}
					return nil
				})[1]
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %s", err, c.text)
				}
			})
		})
	}
}

// A stopped rank says nothing, nor do the ranks that wait for it know more than that.
func TestAStoppedRankIsNamedByAll(t *testing.T) {
	testkit.WithoutRace(t)
	const victim = 2
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 4, func(t *testing.T, w *testWorld) {
				defer w.mortal[victim].Kill() // lets its goroutines end
				stopped := make(chan struct{})
				time.AfterFunc(10*time.Minute, func() { close(stopped) })
				for r, err := range w.results(func(ctx context.Context, g *Group) error {
					for i := 0; ; i++ {
						if g.Rank() == victim && i == 5 {
							w.mortal[victim].Stop()
							<-stopped
							return nil
						}
						if err := operation(ctx, g); err != nil {
							return err
						}
					}
				}) {
					if r != victim {
						wantPeerError(t, r, err, victim, "timed out after 1m0s: does not answer")
					}
				}
			})
		})
	}
}

// lines is what has been logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(b))
	return len(b), nil
}

func (l *lines) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(s string) bool { return !strings.Contains(s, text) })
}

// The one rank that waits for the culprit itself tells, long before the timeout; when the group fails, a file gets what
// each rank did.
func TestLongWaitsAreLogged(t *testing.T) {
	flights := filepath.Join(t.TempDir(), "flights")
	defer process.SaveFlightsIn(flights)()
	if err := os.WriteFile(flights, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		info := make([]core.Peer, 4)
		for r := range info {
			info[r] = core.Peer{Host: "here", PID: os.Getpid()}
		}
		w := &testWorld{t: t}
		for r, tr := range transports["mem"](t, 4) {
			g, err := memberOf(r, info, tr, log)
			if err != nil {
				t.Fatal(err)
			}
			w.groups = append(w.groups, g)
		}
		defer w.close()
		w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 2 {
				return nil
			}
			return AllReduce(ctx, g, make([]float32, 100_000), Sum)
		})
		warned := log.with("an operation takes long")
		want := fmt.Sprintf("operation=%q", "AllReduce #1")
		if len(warned) == 0 || len(warned) > 6 { // from its two neighbours, at ten seconds or so, twenty and forty
			t.Errorf("%d warnings: %q", len(warned), warned)
		}
		for _, line := range warned {
			if !strings.Contains(line, want) || !strings.Contains(line, "rank=2") || !strings.Contains(line, "has not called AllReduce #1") {
				t.Errorf("logged %q", line)
			}
		}
		failed := log.with("the group has failed")
		if len(failed) != 3 {
			t.Errorf("logged %q", failed)
		}
		_, path, _ := strings.Cut(strings.TrimSpace(failed[0]), "flight_recorder=")
		text, err := os.ReadFile(path)
		if lines := strings.Count(string(text), "\n"); err != nil || lines != 3 || strings.Count(string(text), `"call":"AllReduce(float32 × 100000, Sum)"`) != 3 {
			t.Errorf("the flight recorder of 3 ranks has %d lines, %v:\n%s", lines, err, text)
		}
	})
}
