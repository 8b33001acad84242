package hang

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProcessesOfAWorker: the worker comes first, also if another process of its group has a lower number. Its children count, in sessions of their own
// too, and a process of its group whose parent has ended; another worker does not.
func TestProcessesOfAWorker(t *testing.T) {
	older := exec.Command("perl", "-e", `$| = 1; setpgrp(0, <STDIN>) or die; print "done\n"; sleep 100`)
	group, err := older.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := older.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = older.Process.Kill(); _ = older.Wait() })

	workers := newWorkers(t, 2)
	pid := startWorker(t, workers[0], `(sleep 101 &) ; setsid sleep 102 & sleep 103 & touch $GORUN_PROGRESS_FILE; wait`)
	other := startWorker(t, workers[1], `touch $GORUN_PROGRESS_FILE; exec sleep 104`)
	if _, err := fmt.Fprintln(group, pid); err != nil {
		t.Fatal(err)
	}
	_ = group.Close()
	if answer, err := bufio.NewReader(said).ReadString('\n'); err != nil && err != io.EOF || answer != "done\n" {
		t.Fatalf("it has not moved: %q, %v", answer, err)
	}

	command := func(pid int) string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
	}
	var found []string
	want := []string{"sleep 101", "sleep 102", "sleep 103"}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) { // setsid and the shells have begun, and run their programs soon
		list := processesOf(pid)
		if list[0] != pid || slices.Contains(list, other) || !slices.Contains(list, older.Process.Pid) {
			t.Fatalf("%v: want %d first, and %d, and not %d", list, pid, older.Process.Pid, other)
		}
		found = nil
		for _, p := range list[1:] {
			if c := command(p); strings.HasPrefix(c, "sleep") {
				found = append(found, c)
			}
		}
		slices.Sort(found)
		if slices.Equal(found, want) {
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("%q, want %q", found, want)
		}
	}
	for _, p := range processesOf(pid) {
		if command(p) == "sleep 102" { // in another group
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
}
