package comm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/env/testing/testkit"
)

// operations are the calls that a failure may interrupt; each is repeated until it fails.
var operations = map[string]func(ctx context.Context, g *Group) error{
	"AllReduce short": func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]float32, 8), Sum) },
	"AllReduce long":  func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]float32, 200_000), Sum) },
	"Reduce":          func(ctx context.Context, g *Group) error { return Reduce(ctx, g, make([]int64, 30_000), Max, 0) },
	"Broadcast":       func(ctx context.Context, g *Group) error { return Broadcast(ctx, g, make([]int64, 30_000), 2) },
	"AllGather": func(ctx context.Context, g *Group) error {
		return AllGather(ctx, g, make([]int8, 4<<10), make([]int8, 1<<10))
	},
	"ReduceScatter": func(ctx context.Context, g *Group) error {
		return ReduceScatter(ctx, g, make([]int8, 1<<10), make([]int8, 4<<10), Sum)
	},
	"Gather": func(ctx context.Context, g *Group) error {
		return Gather(ctx, g, make([]int, 400), make([]int, 100), 0)
	},
	"AllToAll": func(ctx context.Context, g *Group) error { return AllToAll(ctx, g, make([]int, 400), make([]int, 400)) },
	"Scan":     func(ctx context.Context, g *Group) error { return Scan(ctx, g, make([]int, 400), Sum) },
	"ExScan":   func(ctx context.Context, g *Group) error { return ExScan(ctx, g, make([]int, 400), Sum) },
	"Scatter": func(ctx context.Context, g *Group) error {
		return Scatter(ctx, g, make([]int, 30_000), make([]int, 120_000), 1)
	},
	"GatherV": func(ctx context.Context, g *Group) error {
		return GatherV(ctx, g, [][]int8{{1}, nil, {3}, make([]int8, 1)}, make([]int8, []int{1, 0, 1, 1}[g.Rank()]), 3)
	},
	"AllGatherV": func(ctx context.Context, g *Group) error {
		return AllGatherV(ctx, g, [][]int8{{1}, nil, {3}, make([]int8, 1)}, make([]int8, []int{1, 0, 1, 1}[g.Rank()]))
	},
	"AllToAllV": func(ctx context.Context, g *Group) error {
		ones := []int{1, 1, 1, 1}
		return AllToAllV(ctx, g, make([]int, 4), ones, make([]int, 4), ones)
	},
	"AllReduceCoalesced": func(ctx context.Context, g *Group) error {
		return AllReduceCoalesced(ctx, g, [][]float64{{1}, make([]float64, 50_000)}, Min)
	},
	"BroadcastObjects": func(ctx context.Context, g *Group) error {
		text := "a"
		return BroadcastObjects(ctx, g, []any{&text}, 1)
	},
	"AllGatherObject": func(ctx context.Context, g *Group) error {
		_, err := AllGatherObject(ctx, g, strings.Repeat("a", 10*g.Rank()))
		return err
	},
	"ScatterObject": func(ctx context.Context, g *Group) error {
		_, err := ScatterObject(ctx, g, []int{1, 2, 3, 4}, 0)
		return err
	},
	"NewGroup": func(ctx context.Context, g *Group) error {
		part, err := NewGroup(ctx, g, []int{0, 1, 2})
		if part != nil {
			err = errors.Join(err, part.Close())
		}
		return err
	},
	"Split": func(ctx context.Context, g *Group) error {
		part, err := Split(ctx, g, g.Rank()%2, 0)
		if part != nil {
			err = errors.Join(err, part.Close())
		}
		return err
	},
	"AllReduce in the background": func(ctx context.Context, g *Group) error {
		IBarrier(g)
		return IAllReduce(g, make([]int, 400), Max).Wait(ctx)
	},
	"Barrier": Barrier,
	"Send and Recv": func(ctx context.Context, g *Group) error { // around a ring, so that everybody waits for everybody
		out := ISend(g, make([]byte, 100_000), (g.Rank()+1)%g.Size())
		_, err := Recv(ctx, g, make([]byte, 100_000), (g.Rank()+g.Size()-1)%g.Size())
		return errors.Join(err, out.Wait(ctx))
	},
}

// TestAKilledPeerIsNamedByEverybody: a peer is killed in the middle of an operation. All others return an error that
// names its rank, at once, and nothing they started is left (TestMain and close see to that).
func TestAKilledPeerIsNamedByEverybody(t *testing.T) {
	testkit.WithoutRace(t)
	const victim = 2
	names := slices.Sorted(maps.Keys(operations))
	paths := []string{"tcp", "shm", "tls", "bundles", "halves", "mem"}
	onTransports(t, paths, func(t *testing.T, world func(int) *testWorld) {
		_, path, _ := strings.Cut(t.Name(), "/")
		for i, name := range names {
			if i%len(paths) != slices.Index(paths, path) && testing.Short() { // together, the paths run all
				continue
			}
			t.Run(name, func(t *testing.T) {
				operation, w := operations[name], world(4)
				defer w.close()
				for _, g := range w.groups {
					g.world.ChunkSize = max(g.world.ChunkSize, 4000) // shorter ones take long, and break no other way
				}
				errs := w.results(func(ctx context.Context, g *Group) error {
					for i := 0; ; i++ {
						if g.Rank() == victim && i == 5 {
							if w.shared { // a dead process does not go on in memory
								w.mortal[victim].Kill()
								return nil
							}
							go w.mortal[victim].Kill() // while it goes on with the next operation
						}
						if err := operation(ctx, g); err != nil {
							return err
						}
					}
				})
				for r, err := range errs {
					var peer *PeerError
					if r == victim {
						continue
					}
					if !errors.As(err, &peer) || peer.Rank != victim || !strings.HasPrefix(name, peer.Op) && !strings.HasSuffix(name, peer.Op) {
						t.Errorf("rank %d got %v, want a PeerError about rank %d", r, err, victim)
						continue
					}
					if again := Barrier(t.Context(), w.groups[r]); !errors.As(again, &peer) || peer.Rank != victim {
						t.Errorf("rank %d: the next call got %v, want the same failure", r, again)
					}
				}
			})
		}
	})
}

func TestCallsThatDifferAreToldToEverybody(t *testing.T) {
	const odd = 1 // the rank that differs
	f32 := func(n int) []float32 { return make([]float32, n) }
	for name, c := range map[string]struct {
		usual, odd func(ctx context.Context, g *Group) error
		want       []string // what the error says of the ranks that differ
	}{
		"lengths": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(8), Sum) },
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(9), Sum) },
			[]string{"AllReduce(float32 × 8, Sum)", "AllReduce(float32 × 9, Sum)"},
		},
		"short and long": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(8), Sum) },
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(1<<20), Sum) },
			[]string{"AllReduce(float32 × 8, Sum)", "AllReduce(float32 × 1048576, Sum)"},
		},
		"types": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(8), Sum) },
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]int32, 8), Sum) },
			[]string{"AllReduce(float32 × 8, Sum)", "AllReduce(int32 × 8, Sum)"},
		},
		"operations": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(8), Sum) },
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, f32(8), Max) },
			[]string{"AllReduce(float32 × 8, Sum)", "AllReduce(float32 × 8, Max)"},
		},
		"operations of the caller's own": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]uint64, 8), affine) },
			func(ctx context.Context, g *Group) error {
				twin := NewOp("affine", true, func(_, _ []uint64) {})
				return AllReduce(ctx, g, make([]uint64, 8), twin)
			},
			[]string{"AllReduce(uint64 × 8, affine in blocks of 2 in order of rank)", "AllReduce(uint64 × 8, affine)"},
		},
		"roots": {
			func(ctx context.Context, g *Group) error { return Broadcast(ctx, g, f32(8), 0) },
			func(ctx context.Context, g *Group) error { return Broadcast(ctx, g, f32(8), 1) },
			[]string{"Broadcast(float32 × 8, from 0)", "Broadcast(float32 × 8, from 1)"},
		},
		"collectives": {
			func(ctx context.Context, g *Group) error { return AllGather(ctx, g, f32(8), f32(2)) },
			Barrier,
			[]string{"AllGather(float32 × 2)", "Barrier"},
		},
		"groups": {
			func(ctx context.Context, g *Group) error { _, err := NewGroup(ctx, g, []int{0, 1}); return err },
			func(ctx context.Context, g *Group) error { _, err := NewGroup(ctx, g, []int{0, 2}); return err },
			[]string{"NewGroup(ranks [0 1])", "NewGroup(ranks [0 2])"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, []string{"tcp", "shm", "halves"}, func(t *testing.T, world func(int) *testWorld) {
				w := world(4)
				for r, err := range w.results(func(ctx context.Context, g *Group) error {
					if g.Rank() == odd {
						return c.odd(ctx, g)
					}
					return c.usual(ctx, g)
				}) {
					var m *MismatchError
					closed := w.groups[r].Close()
					if err == nil && strings.Contains(name, "roots") { // a leaf of both trees has what it came for
						if err = closed; err == nil {
							continue
						}
					} else if closed != nil {
						t.Errorf("rank %d: close: %v", r, closed)
					}
					if !errors.As(err, &m) || len(m.Calls) != 2 || m.Seq != 1 {
						t.Errorf("rank %d got %v, want a MismatchError", r, err)
						continue
					}
					if m.Calls[0].Rank != odd && m.Calls[1].Rank != odd {
						t.Errorf("rank %d: rank %d is not among %v", r, odd, m.Calls)
					}
					for _, want := range c.want {
						if !slices.ContainsFunc(m.Calls, func(c RankCall) bool { return strings.HasPrefix(c.Call, want) }) {
							t.Errorf("rank %d: %q is not among %v", r, want, m.Calls)
						}
					}
				}
			})
		})
	}
}

func TestClosedGroups(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			sub, err := NewGroup(ctx, g, []int{1, 0})
			if err != nil {
				return err
			}
			if err := Barrier(ctx, sub); err != nil || g.Rank() == 1 {
				return errors.Join(err, Barrier(ctx, g)) // a member that leaves as well would end what waits for it
			}
			pending := IRecv(sub, []int{0}, AnySource)
			if err := errors.Join(sub.Close(), sub.Close()); err != nil {
				return err
			}
			for _, err := range []error{pending.Wait(ctx), Barrier(ctx, sub), Send(ctx, sub, []int{1}, 0)} {
				if !errors.Is(err, ErrClosed) {
					return fmt.Errorf("got %w, want ErrClosed", err)
				}
			}
			return Barrier(ctx, g)
		})
	})
}

// Ranks end at different times: the last messages of the others must not suffer, whether the ranks leave in good
// order or forget to.
func TestEndingRightAfterTheLastOperation(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		for i, name := range slices.Sorted(maps.Keys(operations)) {
			if i%4 > 0 && testing.Short() {
				continue
			}
			for _, way := range []string{"closed", "not closed"} {
				t.Run(name+" "+way, func(t *testing.T) {
					for range testkit.UnlessShort(6, 1) {
						w := world(4)
						w.t = t
						w.run(func(ctx context.Context, g *Group) error {
							if err := errors.Join(operations[name](ctx, g), operations[name](ctx, g)); err != nil {
								return err
							}
							if way == "not closed" {
								w.mortal[g.Rank()].Kill()
							}
							return g.Close()
						})
					}
				})
			}
		}
	})
}

// A rank that is stopped reads nothing, and its kernel only so much: whoever sends to it must still get away.
func TestSendingToAStoppedProcessTimesOut(t *testing.T) {
	ps := startProcesses(t, "flood", 2)
	if line, err := ps[0].stdout.ReadString('\n'); line != "running\n" {
		t.Fatalf("rank 0 says %q, %v", line, err)
	}
	if err := ps[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(ps[0].stdout)
	err := ps[0].cmd.Wait()
	if got := ps[0].stderr.String(); err == nil || !strings.Contains(got, "rank 1") || !strings.Contains(got, "timed out after 1s: does not answer: its process has been stopped by a signal") {
		t.Errorf("rank 0 printed %q, ended with %v and said %q", rest, err, got)
	}
}

// TestCutOffRanks: all ranks of a machine say at which address another machine's rank did not answer one of them, so that their agent
// learns it, whichever ends first. Ranks of other machines do not.
func TestCutOffRanks(t *testing.T) {
	trs := transports["mem"](t, 4)
	w := newSharingWorld(t, trs, []string{"a", "a", "b", "c"})
	defer w.close()
	found := &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: 2, Text: "was lost", Err: syscall.ETIMEDOUT}
	for r, g := range w.groups {
		g.world.Peers[2].Addr = "10.0.0.2:4711"
		f, want := found, "10.0.0.2:4711"
		switch r {
		case 1: // who has found it
		case 2:
			continue
		default:
			if f = diagnosis.DecodeFailure(found.Encode(1, 1000), 1, 4); r == 3 {
				want = ""
			}
		}
		p, ok := errors.AsType[*PeerError](failure(&core.Error{Group: g.core, Err: f}))
		if !ok || p.Addr != want || p.Finder != 1 {
			t.Errorf("rank %d: %+v, want address %q", r, p, want)
		}
	}
}
