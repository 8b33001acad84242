package wait

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRanksSpreadOverProcessors(t *testing.T) {
	for _, c := range []struct {
		cpus []uint32
		want []string // which ranks move, and where of 1, 2 and 3
	}{
		{[]uint32{1, 2, 1, 2}, []string{"2 to 3", "3 to 3"}}, // before one has seen the other there
		{[]uint32{1, 2, 3, 2}, nil},
		{[]uint32{1, 1, 2, 1}, []string{"3 to 2"}},
		{[]uint32{2, 3, 1, 2, 3, 2}, []string{"5 to 1"}},
		{[]uint32{2, 3, 2, 3, 1}, nil},
		{[]uint32{0, 0, 0, 0}, nil},
		{[]uint32{0, 1, 0, 0}, nil},
		{[]uint32{7, 7}, []string{"1 to 1"}},
		{[]uint32{7, 8}, nil},
	} {
		var moves []string
		for me := range c.cpus {
			for to := uint32(1); to <= 3 && isLastOfSeveral(c.cpus, me); to++ {
				if hasFewer(c.cpus, me, to) {
					moves = append(moves, fmt.Sprint(me, " to ", to))
					break
				}
			}
		}
		if !slices.Equal(moves, c.want) {
			t.Errorf("%v: %q, want %q", c.cpus, moves, c.want)
		}
	}
}

func TestAThreadMovesAndStaysFree(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	last := uint32(0)
	for cpu := range uint32(len(before) * 64) {
		if before.IsSet(int(cpu)) {
			last = cpu + 1
		}
	}
	for _, to := range []uint32{last, 1 << 20} {
		moveTo(func(p uint32) bool { return p == to })
		if err := unix.SchedGetaffinity(0, &after); err != nil {
			t.Fatal(err)
		}
		if after != before {
			t.Errorf("the thread may use %v, and might %v before", after, before)
		}
	}
	if on := currentCPU(); on == 0 || !before.IsSet(int(on)-1) {
		t.Errorf("processor %d is none of %v", on, before)
	}
}

// TestTwoRanksOnOneProcessorPart: there are processors for all ranks, and the kernel has put two on one. The one that waits finds out, and
// moves.
func TestTwoRanksOnOneProcessorPart(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, sameProcess := range []bool{false, true} {
		states, clocks, sleepers := []*State{new(State), new(State)}, []*uint64{new(uint64), new(uint64)}, uint32(0)
		var w Waiter
		w.Init(Processors{CPUs: 2, Ranks: 2, SameProcess: sameProcess}, 1, clocks, states, &sleepers)
		w.Pause(0, 0, 1, cpuLookTime-1)
		if states[1].CPU != 0 {
			t.Error("after a short wait it looks where it is")
		}
		parted := false
		for range 100 { // the kernel may move it back
			states[0].CPU = currentCPU()
			for range 2 * yieldsPerLook {
				w.Pause(0, 0, 1, cpuLookTime)
			}
			parted = parted || states[1].CPU != 0 && currentCPU() != states[0].CPU
		}
		if parted == sameProcess {
			t.Errorf("goroutines of one process: %v; they part: %v", sameProcess, parted)
		}
	}
}
