package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// always prefers the second way, and never comes to a trial.
var always = pace{second: true, ops: -1 << 40}

// reading are the teams of n ranks that read private memory of each other wherever they can.
func reading(t testing.TB, n int) []*Team {
	teams := newTeams(t, n)
	sharing(t, teams)
	for _, team := range teams {
		for i := range team.paces {
			team.paces[i] = always
		}
	}
	together(t, teams, func(team *Team) error { // none knows of another one that it can read before that one has read something
		const n = 50_000
		team.Begin(1, Call{}, 0)
		err := team.AllGather(make([]byte, team.n*n), make([]byte, n))
		team.populated = 0
		return err
	})
	return teams
}

// withCalls are the operations that read private memory.
var withCalls = []string{"broadcast", "scatter", "all-gather", "all-to-all"}

// Ranks that can read each other's memory need no slots.
func TestPrivateBuffersNeedNoSlots(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := reading(t, n)
		seq := uint64(0)
		for _, op := range operations {
			for _, size := range []int{50_000, 300_001, 3 << 20} {
				seq++
				together(t, teams, func(team *Team) error {
					before := team.populated
					team.Begin(seq, Call{What: seq}, seq<<40)
					err := op.run(team, ordinary, seq, size, int(seq)%n, reductions["sum"])
					if slices.Contains(withCalls, op.name) && team.populated != before {
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
			for seq := uint64(1); seq <= 600; seq++ {
				op := operations[rng.IntN(len(operations))]
				size, root, who, reads := rng.IntN(1<<(10+rng.IntN(9))), rng.IntN(n), rng.IntN(1<<n), rng.IntN(1<<n)
				for i := range team.paces {
					team.paces[i] = always
					team.paces[i].second = reads>>team.me&1 != 0
				}
				put, free := placeBuffers(t, heaps[team.me], who>>team.me&1 != 0 && who%3 == 0, rng.IntN(100))
				team.Begin(seq, Call{What: seq}, 0)
				err := op.run(team, put, seq, size, root, reductions["compose"])
				free()
				if err != nil {
					return fmt.Errorf("%s #%d of %d bytes: %w", op.name, seq, size, err)
				}
			}
			return nil
		})
	}
}

// Ranks try both ways, and go on by one of them.
func TestTrials(t *testing.T) {
	teams := newTeams(t, 2)
	sharing(t, teams)
	together(t, teams, func(team *Team) error {
		const n = 40_000
		out := make([]byte, 2*n)
		for seq := uint64(1); seq <= 2*trialEvery; seq++ {
			team.Begin(seq, Call{What: seq}, 0)
			if err := same(team.AllGather(out, input(seq, team.me, n)), out, concat(seq, 2, n)); err != nil {
				return err
			}
		}
		if p := &team.paces[lengthOf(n)]; slices.Contains(p.times[1][:], 0) || slices.Contains(p.times[2][:], 0) {
			t.Errorf("a time has not been measured: %v", p.times)
		}
		if prefers := cpu.Load(&team.ranks[team.me].prefers[0]); prefers == cannotRead {
			t.Error("it has not said that it can read")
		}
		return nil
	})
}

// Who cannot read, or reads something else, says so, and nobody exports private memory.
func TestOtherProcessesAreNotRead(t *testing.T) {
	for name, mislead := range map[string]func(p *process){
		"no such process":       func(p *process) { cpu.Store(&p.pid, 1<<22+1) },
		"another process":       func(p *process) { cpu.Store(&p.word, 1) },
		"no memory there":       func(p *process) { cpu.Store(&p.address, 16) },
		"an address of nothing": func(p *process) { cpu.Store(&p.address, 1<<63) },
	} {
		t.Run(name, func(t *testing.T) {
			teams := newTeams(t, 3)
			sharing(t, teams)
			mislead(&teams[1].ranks[1].process)
			together(t, teams, func(team *Team) error {
				team.paces[0] = always
				for seq := uint64(1); seq <= 3; seq++ {
					const n = 50_000
					out := make([]byte, 3*n)
					team.Begin(seq, Call{What: seq}, 0)
					if err := same(team.AllGather(out, input(seq, team.me, n)), out, concat(seq, 3, n)); err != nil {
						return err
					}
				}
				if prefers := cpu.Load(&team.ranks[team.me].prefers[0]); (prefers == cannotRead) != (team.me != 1) {
					t.Errorf("rank %d prefers %d", team.me, prefers)
				}
				if team.populated == 0 {
					t.Errorf("rank %d has not used slots", team.me)
				}
				return nil
			})
		})
	}
}

// Memory that the kernel does not let processes read goes through slots.
func TestMemoryThatCannotBeRead(t *testing.T) {
	const n = 3 * 4096
	mem, err := unix.Mmap(-1, 0, 16*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	if err := unix.Mprotect(mem[8*4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	teams := reading(t, 2)
	teams[0].Begin(1, Call{}, 0)
	for _, c := range []struct {
		buf []byte
		ok  bool
	}{{mem[:n], true}, {mem[:n], true}, {mem[5*4096:][:n], true}, {mem[5*4096+1:][:n], false}, {mem[8*4096:][:n], false}} {
		if ok := teams[0].exportPrivate(c.buf); ok != c.ok {
			t.Errorf("exported: %t, want %t", ok, c.ok)
		}
	}
}

// Nobody uses private memory that its rank has exported and then revoked, or that has gone. The error says why.
func TestAbandonedPrivateBuffers(t *testing.T) {
	otherFailed := errors.New("the other rank has failed")
	setUp := func(t *testing.T, n int) (teams []*Team, mem []byte, p span) {
		teams = reading(t, 2)
		mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		for _, team := range teams {
			team.onLongWait = func(int, wait.LongWait) error { return otherFailed }
			team.Begin(1, Call{What: 1}, 0)
		}
		if !teams[0].exportPrivate(mem) {
			t.Fatal("not exported")
		}
		return teams, mem, span{n: n}
	}
	const n = 1 << 20
	t.Run("revoked before it is read", func(t *testing.T) {
		teams, mem, p := setUp(t, n)
		defer func() { _ = unix.Munmap(mem) }()
		teams[0].Abandon()
		if done, err := teams[1].readPrivate(make([]byte, n), 0, p); done || !errors.Is(err, otherFailed) {
			t.Errorf("got %t, %v", done, err)
		}
	})
	t.Run("revoked when it has been read", func(t *testing.T) {
		teams, mem, p := setUp(t, n)
		defer func() { _ = unix.Munmap(mem) }()
		if done, err := teams[1].readPrivate(make([]byte, n), 0, p); !done || err != nil {
			t.Errorf("got %t, %v", done, err)
		}
		teams[0].Abandon()
		if err := teams[1].finishReading(readStep(0)); !errors.Is(err, otherFailed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		teams, mem, p := setUp(t, n)
		_ = unix.Munmap(mem)
		_, err := teams[1].readPrivate(make([]byte, n), 0, p)
		if u, ok := errors.AsType[*Unreachable](err); !ok || u.Rank != 0 || !errors.Is(err, unix.EFAULT) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("gone after its rank has abandoned the operation", func(t *testing.T) {
		teams, mem, p := setUp(t, n)
		at, _, err := teams[1].awaitExport(0)
		if err != nil {
			t.Fatal(err)
		}
		teams[0].Abandon()
		_ = unix.Munmap(mem)
		if err := teams[1].copyPrivate(make([]byte, n), 0, at.Offset+uint64(p.at)); !errors.Is(err, otherFailed) {
			t.Errorf("got %v", err)
		}
	})
}
