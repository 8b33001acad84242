package shm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/comm/internal/wait"
	"github.com/gorun/gorun/env/testing/testkit"
)

var secret = []byte("a secret of 16 bytes and more")

// newHeap returns a heap that others can attach.
func newHeap(t testing.TB) (*heap.Heap, *acceptor.Acceptor) {
	t.Helper()
	a, err := acceptor.Listen(secret, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	h := heap.New(a, secret)
	h.Retain()
	t.Cleanup(h.Release)
	return h, a
}

// allocate allocates, or fails the test.
func allocate(t testing.TB, h *heap.Heap, n int) []byte {
	t.Helper()
	mem, err := h.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(mem) != n || cap(mem) != n {
		t.Fatalf("got %d bytes with room for %d, want %d", len(mem), cap(mem), n)
	}
	return mem
}

func start(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

// TestLongOperationsOnHeapsMove: while an operation goes on for which no slots are used, one can see that it does.
func TestLongOperationsOnHeapsMove(t *testing.T) {
	const n, size = 2, 16 << 20
	red := &Reduction{Elem: 1, Kernel: func(d, a, _ []byte) { move(d, a) }}
	for name, call := range map[string]func(team *Team, mem []byte) error{
		"AllReduce": func(team *Team, mem []byte) error { return team.AllReduce(mem, mem, red) },
		"Broadcast": func(team *Team, mem []byte) error { return team.Broadcast(mem, 0) },
		"AllGather": func(team *Team, mem []byte) error { return team.AllGather(mem, block(mem, team.me, n)) },
		"Gather":    func(team *Team, mem []byte) error { return team.Gather(mem, block(mem, team.me, n), 1) },
		"Broadcast by one that has a buffer elsewhere": func(team *Team, mem []byte) error {
			if team.me != 1 {
				mem = make([]byte, len(mem))
			}
			return team.Broadcast(mem, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			teams := newTeams(t, n)
			heaps := sharing(t, teams)
			together(t, teams, func(team *Team) error {
				mem := allocate(t, heaps[team.me], size)
				team.Begin(1, Call{What: 1}, 1<<32)
				return call(team, mem)
			})
			if moves := teams[0].Moves(); moves < 4 {
				t.Errorf("it moves %d times", moves)
			}
		})
	}
}

// Offsets from other ranks are not trusted.
func TestOffsetsOutOfBounds(t *testing.T) {
	mem := make([]byte, 100)
	for _, c := range []struct {
		offset uint64
		p      span
		ok     bool
	}{
		{0, span{n: 100}, true}, {100, span{}, true}, {40, span{at: 20, n: 40}, true},
		{0, span{n: 101}, false}, {101, span{}, false}, {40, span{at: 21, n: 40}, false},
		{math.MaxUint64, span{n: 2}, false}, {math.MaxUint64 - 10, span{at: 20, n: 40}, false},
	} {
		got, err := within(mem, c.offset, c.p)
		if ok := err == nil; ok != c.ok || ok && len(got) != c.p.n {
			t.Errorf("%+v from %d on: got %d bytes, %v", c.p, c.offset, len(got), err)
		}
	}
}

// sharing lets the ranks of teams use each other's heaps, and returns these.
func sharing(t testing.TB, teams []*Team) []*heap.Heap {
	heaps, addresses := make([]*heap.Heap, len(teams)), make([]string, len(teams))
	for r := range teams {
		var d *acceptor.Acceptor
		heaps[r], d = newHeap(t)
		addresses[r] = d.Address()
	}
	for r, team := range teams {
		team.Share(context.Background(), heaps[r], addresses)
	}
	return heaps
}

// placeBuffers returns put, which places a buffer into h, shift bytes behind the start of a page, and free, which frees all such buffers.
// If shared is false, put leaves buffers where they are.
func placeBuffers(t testing.TB, h *heap.Heap, shared bool, shift int) (put memory, free func()) {
	if !shared {
		return ordinary, func() {}
	}
	var all [][]byte
	put = func(buf []byte) []byte {
		mem := allocate(t, h, len(buf)+shift+1)
		all = append(all, mem)
		copy(mem[shift:], buf)
		return mem[shift : shift+len(buf)]
	}
	return put, func() {
		for _, mem := range all {
			if !h.Free(start(mem)) {
				t.Error("cannot be freed")
			}
		}
	}
}

// Ranks have buffers in heaps, or not, in any combination.
func TestOperationsOnHeaps(t *testing.T) {
	testkit.WithoutRace(t)
	for _, n := range []int{2, 3} {
		teams := newTeams(t, n)
		heaps := sharing(t, teams)
		seq := uint64(0)
		for _, op := range operations {
			for _, size := range []int{20_000, 70_001} {
				for who := range 1 << n { // bits: ranks whose buffers are in heaps
					seq++
					t.Run(fmt.Sprintf("%s/%d bytes/%0*b", op.name, size, n, who), func(t *testing.T) {
						together(t, teams, func(team *Team) error {
							put, free := placeBuffers(t, heaps[team.me], who>>team.me&1 != 0, int(seq)%3*8)
							defer free()
							team.Begin(seq, Call{What: seq}, 0)
							return op.run(team, put, seq, size, int(seq)%n, reductions[[]string{"compose", "fold"}[seq/2%2]])
						})
					})
				}
			}
		}
	}
}

// Ranks that run ahead, or fall behind, use the right buffers of each other.
func TestOperationsOnHeapsInARow(t *testing.T) {
	testkit.WithoutRace(t)
	for _, n := range []int{2, 4} {
		teams := newTeams(t, n)
		heaps := sharing(t, teams)
		together(t, teams, func(team *Team) error {
			rng := rand.New(rand.NewPCG(7, 8)) // the same on all ranks
			for seq := uint64(1); seq <= 300; seq++ {
				op := operations[rng.IntN(len(operations))]
				size, root, slow, who := rng.IntN(1<<rng.IntN(18)), rng.IntN(n), rng.IntN(n), rng.IntN(1<<n)
				if seq%50 == 0 && slow == team.me {
					time.Sleep(time.Millisecond) // let others go first
				}
				put, free := placeBuffers(t, heaps[team.me], who>>team.me&1 != 0, rng.IntN(100))
				err := op.compose(team, put, seq, size, root)
				free()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// Ranks do not use a buffer that another one has exported and then revoked.
func TestAbandonedBuffersAreNotUsed(t *testing.T) {
	teams := newTeams(t, 2)
	heaps := sharing(t, teams)
	otherFailed := errors.New("the other rank has failed")
	bufs, all := make([][]byte, 2), span{n: 100_000}
	for r, team := range teams {
		team.onLongWait = func(int, wait.LongWait) error { return otherFailed }
		bufs[r] = allocate(t, heaps[r], all.n)
		team.Begin(1, Call{What: 1}, 0)
		team.exportBuffer(bufs[r], all)
	}
	mem, err := teams[1].attach(0, all)
	if err != nil || start(mem) == start(bufs[0]) {
		t.Fatalf("got %p, %v", start(mem), err)
	}
	teams[0].Abandon()
	if err := teams[1].finishReading(readStep(0)); !errors.Is(err, otherFailed) {
		t.Errorf("got %v", err)
	}
	if mem, err := teams[1].attach(0, all); mem != nil || !errors.Is(err, otherFailed) {
		t.Errorf("it is still exported: %v", err)
	}
	before := start(bufs[0])
	if heaps[0].Free(before); start(allocate(t, heaps[0], all.n)) == before {
		t.Error("memory that others may write to is used again")
	}
}

// throughSlots are the operations of groups on several machines, of which a team does only a stage.
var throughSlots = map[string]bool{"reduce-scatter-v": true, "all-gather-v": true, "gather slices": true, "gather-v": true, "scatter-v": true, "all-to-all-v": true, "one after the other": true}

// Where all ranks of a group on one machine have their buffers in heaps, nothing goes through slots.
func TestBuffersInHeapsNeedNoSlots(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := newTeams(t, n)
		heaps := sharing(t, teams)
		for i, op := range operations[1:] { // a barrier has no buffers
			if throughSlots[op.name] {
				continue
			}
			together(t, teams, func(team *Team) error {
				put, free := placeBuffers(t, heaps[team.me], true, 0)
				defer free()
				team.Begin(uint64(i+1), Call{What: uint64(i + 1)}, 0)
				err := op.run(team, put, uint64(i+1), 50_000, 0, reductions["sum"])
				if team.populated != 0 {
					t.Errorf("%s of %d ranks has used slots", op.name, n)
				}
				return err
			})
		}
	}
}

// Where ranks share processors, the root of a short broadcast does not wait for the others, wherever its buffer lies.
func TestRootStagesWhenOversubscribed(t *testing.T) {
	teams := newTeams(t, 2)
	heaps := sharing(t, teams)
	waits := errors.New("it waits")
	teams[0].waiter.Oversubscribed, teams[0].waiter.SameProcess = true, false
	teams[0].onLongWait = func(int, wait.LongWait) error { return waits }
	for i, c := range []struct {
		size int
		err  error
	}{{choice.Registered.LeastRoot - 1, nil}, {choice.Registered.LeastRoot, waits}} {
		buf := allocate(t, heaps[0], c.size)
		copy(buf, input(1, 0, c.size))
		teams[0].Begin(uint64(i+1), Call{}, 0)
		if err := teams[0].Broadcast(buf, 0); !errors.Is(err, c.err) {
			t.Fatalf("the root of %d bytes, alone: %v", c.size, err)
		} else if err != nil {
			continue
		}
		got := allocate(t, heaps[1], c.size)
		teams[1].Begin(uint64(i+1), Call{}, 0)
		if err := same(teams[1].Broadcast(got, 0), got, buf); err != nil {
			t.Error(err)
		}
	}
}

// Ranks write each other's outputs in place, wherever the inputs lie.
func TestOutputsInHeapsNeedNoSlots(t *testing.T) {
	const n = 50_000
	teams := newTeams(t, 3)
	heaps := sharing(t, teams)
	together(t, teams, func(team *Team) error {
		out := allocate(t, heaps[team.me], n*team.n)
		team.Begin(1, Call{What: 1}, 0)
		if err := same(team.AllGather(out, input(1, team.me, n)), out, concat(1, team.n, n)); err != nil {
			return err
		}
		var want []byte
		for r := range team.n {
			want = append(want, block(input(2, r, n*team.n), team.me, team.n)...)
		}
		team.Begin(2, Call{What: 2}, 0)
		err := same(team.AllToAll(out, input(2, team.me, n*team.n)), out, want)
		if team.populated != 0 {
			t.Error("slots have been used")
		}
		return err
	})
}

// Ranks that have attached a buffer and then not used it do not mind if its rank goes on.
func TestSomeExportAndGoOn(t *testing.T) {
	const size = 200_000
	teams := newTeams(t, 4)
	heaps := sharing(t, teams)
	together(t, teams, func(team *Team) error {
		buf := make([]byte, size)
		if team.me != 1 {
			buf = allocate(t, heaps[team.me], size)
		}
		for seq := uint64(1); seq <= 1000; seq++ {
			team.Begin(seq, Call{What: 1}, 0)
			if err := team.Broadcast(buf, 3); err != nil {
				return fmt.Errorf("broadcast #%d: %w", seq, err)
			}
		}
		return nil
	})
}
