package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/cma"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// reading returns the teams of n ranks that use CMA wherever they can.
func reading(t testing.TB, n int) []*Team {
	teams := newTeams(t, n)
	sharing(t, teams)
	for _, team := range teams {
		team.alwaysReads()
	}
	together(t, teams, func(team *Team) error { // in its first operation, each rank says that it can read
		const n = 50_000
		team.Begin(1, Call{}, 0)
		return team.AllGather(make([]byte, team.n*n), make([]byte, n))
	})
	return teams
}

// alwaysReads makes t use CMA wherever it can.
func (t *Team) alwaysReads() {
	for op := range t.ways.private {
		t.ways.private[op] = choice.Choice{{Name: "cma", UpTo: choice.Any}}
	}
}

// withPrivateMemory are the operations that may use private memory.
var withPrivateMemory = []string{"scatter", "all-gather", "all-to-all"}

// Ranks that can read each other's memory need no slots.
func TestPrivateBuffersNeedNoSlots(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := reading(t, n)
		seq := uint64(1)
		for _, op := range operations {
			for _, size := range []int{50_000, 300_001, 2_100_000} {
				seq++
				together(t, teams, func(team *Team) error {
					team.populated = 0
					team.Begin(seq, Call{What: seq}, seq<<40)
					err := op.run(team, ordinary, seq, size, int(seq)%n, reductions["sum"])
					if slices.Contains(withPrivateMemory, op.name) && team.populated != 0 {
						t.Errorf("%s of %d bytes on %d ranks has used slots", op.name, size, n)
					}
					return err
				})
			}
		}
	}
}

// Ranks export memory in heaps, private memory, or nothing, and run ahead or fall behind.
func TestPrivateBuffersInARow(t *testing.T) {
	for _, n := range []int{2, 4} {
		teams := reading(t, n)
		heaps := sharing(t, teams)
		together(t, teams, func(team *Team) error {
			rng := rand.New(rand.NewPCG(7, 9)) // the same on all ranks
			for seq := uint64(2); seq <= 300; seq++ {
				op := operations[rng.IntN(len(operations))]
				size, root, who, reads := rng.IntN(1<<(10+rng.IntN(9))), rng.IntN(n), rng.IntN(1<<n), rng.IntN(1<<n)
				way := "slots"
				if reads>>team.me&1 != 0 {
					way = "cma"
				}
				for op := range team.ways.private {
					team.ways.private[op] = choice.Choice{{Name: way, UpTo: choice.Any}}
				}
				put, free := placeBuffers(t, heaps[team.me], who>>team.me&1 != 0 && who%3 == 0, rng.IntN(100))
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

// Who cannot read, or reads something else, says so, and nobody exports private memory.
func TestOtherProcessesAreNotRead(t *testing.T) {
	for name, mislead := range map[string]func(p *cma.Process){
		"no such process":       func(p *cma.Process) { cpu.Store(&p.PID, 1<<22+1) },
		"another process":       func(p *cma.Process) { cpu.Store(&p.Nonce, 1) },
		"no memory there":       func(p *cma.Process) { cpu.Store(&p.NonceAt, 16) },
		"an address of nothing": func(p *cma.Process) { cpu.Store(&p.NonceAt, 1<<63) },
	} {
		t.Run(name, func(t *testing.T) {
			teams := newTeams(t, 3)
			sharing(t, teams)
			mislead(&teams[1].ranks[1].process)
			together(t, teams, func(team *Team) error {
				team.alwaysReads()
				for seq := uint64(1); seq <= 3; seq++ {
					const n = 50_000
					out := make([]byte, 3*n)
					team.Begin(seq, Call{What: seq}, 0)
					if err := same(team.AllGather(out, input(seq, team.me, n)), out, concat(seq, 3, n)); err != nil {
						return err
					}
					if team.Sent == 0 {
						return fmt.Errorf("operation %d has not used slots", seq)
					}
				}
				if says := preferences(cpu.Load(&team.ranks[team.me].preferences)); (says == cannotRead) != (team.me != 1) {
					t.Errorf("rank %d says %b", team.me, says)
				}
				return nil
			})
		})
	}
}

// Ranks get memory that the kernel does not let them read through slots, and use no more system calls after that.
func TestMemoryThatCannotBeRead(t *testing.T) {
	for _, op := range withPrivateMemory {
		for _, n := range []int{2, 3} {
			for _, size := range []int{50_000, 2_100_000} {
				for who := 1; who < 1<<n; who++ { // bits: ranks that cannot read
					if all := 1<<n - 1; size > mostStaging && who != all { // it takes long
						continue
					}
					t.Run(fmt.Sprintf("%s of %d bytes by %0*b", op, size, n, who), func(t *testing.T) {
						teams := reading(t, n)
						i := 0
						for operations[i].name != op {
							i++
						}
						for seq := uint64(2); seq < 5 && (size < mostStaging || seq < 4); seq++ {
							for _, team := range teams {
								for r := range n {
									if who>>team.me&1 != 0 && seq == 3 {
										team.processes[r].PID = 1<<22 + 1 // there is none
									}
								}
							}
							together(t, teams, func(team *Team) error {
								team.Begin(seq, Call{What: seq}, seq<<40)
								return operations[i].run(team, ordinary, seq, size, int(seq)%n, reductions["sum"])
							})
						}
						for _, team := range teams {
							all, may := op == "all-gather" || op == "all-to-all", who>>team.me&1 != 0 // a root reads nothing
							if refused := team.refused != 0; refused && !may || !refused && may && all {
								t.Errorf("rank %d has refused: %t", team.me, refused)
							}
							if says := preferences(cpu.Load(&team.ranks[team.me].preferences)); (team.refused != 0) != (says.of(gatheringAll, 0) == cannotRead) {
								t.Errorf("rank %d says %b", team.me, says)
							}
							if team.exported != nil || slices.ContainsFunc(team.attached, func(a attachment) bool { return a.private }) {
								t.Errorf("rank %d still refers to a buffer", team.me)
							}
						}
					})
				}
			}
		}
	}
}

// While ranks get what they have refused to read through slots, one can see that they go on.
func TestFallbackMoves(t *testing.T) {
	teams := reading(t, 2)
	moves := func(size int) uint64 {
		before := teams[0].Moves()
		together(t, teams, func(team *Team) error {
			team.Begin(uint64(size), Call{What: uint64(size)}, 0)
			return team.AllGather(make([]byte, 2*size), make([]byte, size))
		})
		return teams[0].Moves() - before
	}
	const size = 8 << 20
	without := moves(size)
	for _, team := range teams {
		team.processes[1-team.me].PID = 1<<22 + 1 // there is none
	}
	if with, slots := moves(size+1), uint64(size/teams[0].slot); with < without+slots {
		t.Errorf("it moves %d times without and %d times with a fallback through 2 × %d slots", without, with, slots)
	}
}

// A team of so many ranks that there might be too few steps for a fallback uses slots.
func TestStepsOfFallback(t *testing.T) {
	for _, c := range []struct {
		n    int
		most int // bytes that each takes from another
	}{{2, 64 << 30}, {8, 8 << 30}, {64, 32 << 20}, {256, 512 << 10}} {
		team := &Team{n: c.n, slot: slotSize(c.n)}
		if !team.hasStepsToServe(c.most) {
			t.Errorf("%d ranks have no steps for %d bytes", c.n, c.most)
		}
		for n := c.most; ; n *= 2 {
			count := (n + team.slot/2 - 1) / (team.slot / 2)
			if most := team.servingStep(3*count, c.n-1, c.n-1, count, count-1); team.hasStepsToServe(n) && most >= 1<<stepBits {
				t.Fatalf("%d ranks need %d steps for %d bytes", c.n, most, n)
			} else if !team.hasStepsToServe(n) {
				break
			}
		}
	}
}

// Nobody uses private memory that its rank has exported and then revoked. Memory that has gone is refused.
func TestAbandonedPrivateBuffers(t *testing.T) {
	const n = 1 << 20
	otherFailed := errors.New("the other rank has failed")
	for _, c := range []struct {
		name          string
		before, after func(teams []*Team, mem []byte) // the read
		refused       bool
		err           error
	}{
		{name: "used", err: nil},
		{name: "revoked before it is read", before: func(teams []*Team, _ []byte) { teams[0].Abandon() }, err: otherFailed},
		{name: "revoked after it has been read", after: func(teams []*Team, _ []byte) { teams[0].Abandon() }, err: otherFailed},
		{name: "gone", before: func(_ []*Team, mem []byte) { unmap(mem) }, refused: true},
		{name: "gone in part", before: func(_ []*Team, mem []byte) { unmap(mem[n/2:]) }, refused: true},
		{name: "revoked and gone", before: func(teams []*Team, mem []byte) {
			teams[0].Abandon()
			unmap(mem)
		}, err: otherFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			teams := reading(t, 2)
			mem, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0), 0)
			if errno != 0 {
				t.Fatal(errno)
			}
			buf := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&mem))), n)
			for _, team := range teams {
				team.onLongWait = func(int, wait.LongWait) error { return otherFailed }
				team.Begin(2, Call{What: 2}, 0)
			}
			teams[0].exportPrivate(buf)
			at, _, err := teams[1].awaitExport(0)
			if err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				c.before(teams, buf)
			}
			got := make([]byte, n)
			if c.err != nil && c.after == nil { // as a rank sees it that looks now, and one that has looked before
				if _, err := teams[1].readPrivate(got, 0, span{n: n}); !errors.Is(err, c.err) {
					t.Errorf("got %v, want %v", err, c.err)
				}
			}
			teams[1].attached[0] = attachment{id: teams[1].op, mem: got, private: true}
			err = teams[1].copyPrivate(got, 0, at.Offset)
			if c.after != nil {
				c.after(teams, buf)
			}
			if err == nil {
				err = teams[1].finishReading(readStep(0))
			}
			if refused := teams[1].refused == teams[1].op; refused != c.refused || !errors.Is(err, c.err) {
				t.Errorf("refused: %t, error %v; want %t, %v", refused, err, c.refused, c.err)
			}
		})
	}
}

// unmap unmaps a part of memory that unix.Mmap has not mapped.
func unmap(b []byte) {
	_, _, _ = unix.Syscall(unix.SYS_MUNMAP, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
}
