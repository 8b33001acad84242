package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/wait"
	"github.com/gorun/gorun/env/testing/testkit"
)

// An operation is one of operations.
type operation struct {
	name string
	run  func(t *Team, in memory, seq uint64, n, root int, red *Reduction) error
}

// compose carries out op as operation seq of t, and combines by a function that shows in which order.
func (op operation) compose(t *Team, in memory, seq uint64, n, root int) error {
	t.Begin(seq, Call{What: seq}, 0)
	if err := op.run(t, in, seq, n, root, reductions["compose"]); err != nil {
		return fmt.Errorf("%s #%d of %d bytes: %w", op.name, seq, n, err)
	}
	return nil
}

func TestOperations(t *testing.T) {
	testkit.WithoutRace(t)
	for _, n := range []int{2, 3, 5} {
		teams := newTeams(t, n)
		seq := uint64(0)
		for _, op := range operations {
			for name, red := range reductions {
				for _, size := range []int{0, 1, 1000, 20_000, 150_001} {
					seq++
					t.Run(fmt.Sprintf("%s/%s/%d ranks/%d bytes", op.name, name, n, size), func(t *testing.T) {
						together(t, teams, func(team *Team) error {
							team.Begin(seq, Call{What: seq}, seq<<40)
							return op.run(team, ordinary, seq, size, int(seq)%n, red)
						})
					})
				}
			}
		}
	}
}

// Ranks that run ahead, or fall behind, meet in the right slots.
func TestOperationsInARow(t *testing.T) {
	testkit.WithoutRace(t)
	for _, n := range []int{2, 4} {
		teams := newTeams(t, n)
		together(t, teams, func(team *Team) error {
			rng := rand.New(rand.NewPCG(7, 7)) // the same on all ranks
			for seq := uint64(1); seq <= 500; seq++ {
				op := operations[rng.IntN(len(operations))]
				size, root, slow := rng.IntN(1<<rng.IntN(17)), rng.IntN(n), rng.IntN(n)
				if seq%50 == 0 && slow == team.me {
					time.Sleep(time.Millisecond) // let others go first
				}
				team.Begin(seq, Call{What: seq}, seq<<40)
				err := op.run(team, ordinary, seq, size, root, reductions["compose"])
				if err != nil {
					return fmt.Errorf("%s #%d of %d bytes: %w", op.name, seq, size, err)
				}
			}
			return nil
		})
	}
}

// The rank that comes second finds the mismatch. The other one gets an error when its wait has lasted.
func TestMismatch(t *testing.T) {
	for range 100 {
		teams := newTeams(t, 2)
		errs := make([]error, 2)
		failed := []chan struct{}{make(chan struct{}), make(chan struct{})}
		otherFailed := errors.New("the other rank has failed")
		together(t, teams, func(team *Team) error {
			team.onLongWait = func(r int, _ wait.LongWait) error {
				<-failed[r]
				return otherFailed
			}
			team.Begin(5, Call{What: 5, RootAndBefore: uint64(team.me)}, uint64(team.me)<<32)
			if team.me == 0 {
				errs[0] = team.Barrier()
			} else {
				errs[1] = team.Broadcast(make([]byte, 10), 0)
			}
			close(failed[team.me])
			return nil
		})
		found := 0
		for r, err := range errs {
			m, ok := errors.AsType[*Mismatch](err)
			switch {
			case ok && m.Rank == 1-r && m.Theirs.Call == (Call{What: 5, RootAndBefore: uint64(1 - r)}) && m.Mine.Call.RootAndBefore == uint64(r) && m.Mine.Seq == 5 && m.Theirs.Seq == 5 && m.Agreed == 0:
				found++
			case !errors.Is(err, otherFailed):
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if found == 0 {
			t.Error("no rank has noticed")
		}
	}
}

// No two ranks write to one cache line, nor to two that are fetched together.
func TestLayout(t *testing.T) {
	if size := unsafe.Sizeof(control{}); size%128 != 0 {
		t.Errorf("a control has %d bytes", size)
	}
	if size := unsafe.Sizeof(header{}); size != 128 {
		t.Errorf("the header takes %d bytes", size)
	}
	if llBufferSize < 3*choice.LLEntrySize {
		t.Errorf("an LL buffer of %d bytes for entries of %d", llBufferSize, choice.LLEntrySize)
	}
	for _, at := range []uintptr{unsafe.Offsetof(control{}.records), unsafe.Offsetof(control{}.wait), unsafe.Sizeof(llBuffer{})} {
		if at%lineSize != 0 {
			t.Errorf("byte %d is not the first of a line", at)
		}
	}
}

// TestLLMessagesInARow: when all ranks read from each other, no rank waits for an entry that becomes free only in its own next operation.
func TestLLMessagesInARow(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := newTeams(t, n)
		together(t, teams, func(team *Team) error {
			for seq := uint64(1); seq <= 200; seq++ {
				op, longest := operations[4], choice.LongestLL(1) // all-gather
				if seq%2 == 0 {
					op, longest = operations[5], choice.LongestLL(n) // all-to-all
				}
				size := int(seq) * 331 % (longest + 1)
				team.Begin(seq, Call{What: seq}, seq<<40)
				if err := op.run(team, ordinary, seq, size, 0, new(Reduction)); err != nil {
					return fmt.Errorf("#%d of %d bytes: %w", seq, size, err)
				}
			}
			return nil
		})
		for _, team := range teams {
			if team.populated != 0 {
				t.Errorf("%d bytes have gone through slots", team.populated)
			}
		}
	}
}

// exchanges are the methods that are alone in their operation.
var exchanges = map[string]bool{"gather-v": true, "scatter-v": true, "all-to-all-v": true}

// An operation may have many methods, and all of them may be short: none reads what an earlier one has written.
func TestManyShortMethodsDoNotReadEachOther(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := newTeams(t, n)
		together(t, teams, func(team *Team) error {
			team.Begin(1, Call{What: 1}, 1<<40)
			for i := range 3 * llEntries {
				op := operations[i%len(operations)]
				if exchanges[op.name] {
					continue
				}
				if err := op.run(team, ordinary, uint64(i+1), (i*331%5000)/n*n, i%n, reductions["sum"]); err != nil {
					return fmt.Errorf("method %d, %s: %w", i, op.name, err)
				}
				team.Next()
			}
			return nil
		})
	}
}

func BenchmarkAllReduce(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			teams := newTeams(b, 2)
			b.SetBytes(int64(size))
			b.ResetTimer()
			together(b, teams, func(team *Team) error {
				buf := make([]byte, size)
				for seq := uint64(1); seq <= uint64(b.N); seq++ {
					team.Begin(seq, Call{What: 1}, seq<<40)
					if err := team.AllReduce(buf, buf, &Reduction{Elem: 1, Kernel: func(d, a, _ []byte) { move(d, a) }}); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestLongOperationsMove: while an operation of many chunks goes on, one can see that it does.
func TestLongOperationsMove(t *testing.T) {
	teams := newTeams(t, 2)
	run := func(seq uint64, size int) (moves uint64) {
		before := teams[0].Moves()
		together(t, teams, func(team *Team) error {
			team.Begin(seq, Call{What: seq}, seq<<32)
			return team.Broadcast(input(seq, 0, size), 0)
		})
		return teams[0].Moves() - before
	}
	if moves := run(1, 100); moves != 0 {
		t.Errorf("a short operation moves %d times, which costs time", moves)
	}
	if moves := run(2, 64<<20); moves < 10 {
		t.Errorf("a long operation moves %d times", moves)
	}
}
