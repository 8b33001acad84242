package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func TestParseStat(t *testing.T) {
	const rest = " 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 %d 0 %d 10 20 30\n"
	tests := []struct {
		in   string
		want Process
		ok   bool
	}{
		{fmt.Sprintf("12 (train) S 3 4 5"+rest, 1, 99), Process{Pid: 12, Parent: 3, Group: 4, Session: 5, StartTicks: 99}, true},
		{fmt.Sprintf("12 (a) Z 9 (b) R 3 4 5"+rest, 1, 99), Process{Pid: 12, Parent: 3, Group: 4, Session: 5, StartTicks: 99}, true},
		{fmt.Sprintf("12 () \n) Z 3 4 5"+rest, 1, 99), Process{Pid: 12, Parent: 3, Group: 4, Session: 5, StartTicks: 99, Zombie: true}, true},
		{fmt.Sprintf("12 (main thread ended) Z 3 4 5"+rest, 8, 99), Process{Pid: 12, Parent: 3, Group: 4, Session: 5, StartTicks: 99}, true},
		{"", Process{}, false},
		{"12 (train) S 3", Process{}, false},
		{")12(", Process{}, false},
		{fmt.Sprintf("x (train) S 3 4 5"+rest, 1, 99), Process{}, false},
		{fmt.Sprintf("12 (train) S x 4 5"+rest, 1, 99), Process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat([]byte(tt.in)); got != tt.want || ok != tt.ok {
			t.Errorf("parseStat(%q) = %+v, %v; want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestReadProcess(t *testing.T) {
	p, ok := Read(os.Getpid())
	if !ok || p.Pid != os.Getpid() || p.Parent != os.Getppid() || p.Group != syscall.Getpgrp() || p.StartTicks == 0 || p.Zombie {
		t.Errorf("%+v, %v", p, ok)
	}
}

func TestDescendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Any ppid, also rings and parents that are not there: pids may be reused while /proc is read.
		var all []Process
		for pid := 1; pid <= rapid.IntRange(0, 12).Draw(t, "processes"); pid++ {
			all = append(all, Process{Pid: pid, Parent: rapid.IntRange(0, 13).Draw(t, "ppid")})
		}
		const root = 1
		found := Descendants(all, func(p Process) bool { return p.Parent == root })
		at := map[int]int{}
		for i, p := range found {
			if _, twice := at[p.Pid]; twice {
				t.Fatalf("%d is there twice", p.Pid)
			}
			at[p.Pid] = i
		}
		for _, p := range all {
			i, in := at[p.Pid]
			parent, parentIn := at[p.Parent]
			if in != (p.Parent == root || parentIn) {
				t.Fatalf("%+v: found %v, its parent %v", p, in, parentIn)
			}
			if in && p.Parent != root && parent > i {
				t.Fatalf("%+v comes before its parent", p)
			}
		}
	})
}

// TestSignalSparesStrangers: a pid that has become another process's is not signalled.
func TestSignalSparesStrangers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := Read(cmd.Process.Pid)
	if !ok {
		t.Fatal("it cannot be read")
	}
	seen := p // before its pid was used again
	seen.StartTicks--
	if err := seen.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal for a process that has ended: %v", err)
	}
	if killed, denied := KillAll([]Process{seen}); killed != 0 || denied != nil {
		t.Errorf("killed %d, denied %v", killed, denied)
	}
	if err := p.Signal(0); err != nil {
		t.Fatalf("the stranger is dead: %v", err)
	}
	if killed, _ := KillAll([]Process{p}); killed != 1 {
		t.Errorf("killed %d", killed)
	}
	_ = cmd.Wait() // killed
	if err := p.Signal(0); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal for a process that has been waited for: %v", err)
	}
}
