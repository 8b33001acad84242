package launcher

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func TestParseStat(t *testing.T) {
	const rest = " 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 %d 0 %d 10 20 30\n"
	tests := []struct {
		in   string
		want process
		ok   bool
	}{
		{fmt.Sprintf("12 (train) S 3 4 5"+rest, 1, 99), process{pid: 12, ppid: 3, pgid: 4, sid: 5, startTicks: 99}, true},
		{fmt.Sprintf("12 (a) Z 9 (b) R 3 4 5"+rest, 1, 99), process{pid: 12, ppid: 3, pgid: 4, sid: 5, startTicks: 99}, true},
		{fmt.Sprintf("12 () \n) Z 3 4 5"+rest, 1, 99), process{pid: 12, ppid: 3, pgid: 4, sid: 5, startTicks: 99, zombie: true}, true},
		{fmt.Sprintf("12 (main thread ended) Z 3 4 5"+rest, 8, 99), process{pid: 12, ppid: 3, pgid: 4, sid: 5, startTicks: 99}, true},
		{"", process{}, false},
		{"12 (train) S 3", process{}, false},
		{")12(", process{}, false},
		{fmt.Sprintf("x (train) S 3 4 5"+rest, 1, 99), process{}, false},
		{fmt.Sprintf("12 (train) S x 4 5"+rest, 1, 99), process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat([]byte(tt.in)); got != tt.want || ok != tt.ok {
			t.Errorf("parseStat(%q) = %+v, %v; want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestReadProcess(t *testing.T) {
	p, ok := readProcess(os.Getpid())
	if !ok || p.pid != os.Getpid() || p.ppid != os.Getppid() || p.pgid != syscall.Getpgrp() || p.startTicks == 0 || p.zombie {
		t.Errorf("%+v, %v", p, ok)
	}
}

func TestDescendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Any ppid, also rings and parents that are not there: pids may be reused while /proc is read.
		var all []process
		for pid := 1; pid <= rapid.IntRange(0, 12).Draw(t, "processes"); pid++ {
			all = append(all, process{pid: pid, ppid: rapid.IntRange(0, 13).Draw(t, "ppid")})
		}
		const root = 1
		found := descendants(all, func(p process) bool { return p.ppid == root })
		at := map[int]int{}
		for i, p := range found {
			if _, twice := at[p.pid]; twice {
				t.Fatalf("%d is there twice", p.pid)
			}
			at[p.pid] = i
		}
		for _, p := range all {
			i, in := at[p.pid]
			parent, parentIn := at[p.ppid]
			if in != (p.ppid == root || parentIn) {
				t.Fatalf("%+v: found %v, its parent %v", p, in, parentIn)
			}
			if in && p.ppid != root && parent > i {
				t.Fatalf("%+v comes before its parent", p)
			}
		}
	})
}
