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
