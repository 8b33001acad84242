package hang

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProcessesOfAWorker: the worker comes first, then what is in its session, in whatever process group and with whatever parent, then what has
// left the session. A process of somebody else does not count, though it has moved into the worker's process group.
func TestProcessesOfAWorker(t *testing.T) {
	workers := newWorkers(t, 2)
	workers[0].Pid = startWorker(t, workers[0], `
		setsid sleep 102 &
		set -m; (sleep 101 & ); set +m
		sleep 103 & touch $GORUN_PROGRESS_FILE; wait`)
	workers[1].Pid = startWorker(t, workers[1], `touch $GORUN_PROGRESS_FILE; exec sleep 104`)
	stranger := exec.Command("sleep", "105")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: workers[0].Pid}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })

	programs := func(pids []int) (list []string) {
		for _, pid := range pids {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			command, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")), "\n")
			list = append(list, command)
		}
		return list
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) { // the shells may not have executed their programs yet
		list := processesOf(workers[0])
		if list[0] != workers[0].Pid {
			t.Fatalf("%v: want %d first", list, workers[0].Pid)
		}
		found := programs(list[1:])
		if len(found) == 3 {
			slices.Sort(found[:2])
		}
		if want := []string{"sleep 101", "sleep 103", "sleep 102"}; slices.Equal(found, want) {
			for _, pid := range list[1:] { // some are in groups of their own
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		} else if time.Since(begun) > patience {
			t.Fatalf("%q, want %q", found, want)
		}
	}
}

// TestManyProcesses: a worker is looked at, however many processes with lower numbers it has.
func TestManyProcesses(t *testing.T) {
	workers := newWorkers(t, 1)
	workers[0].Pid = startWorker(t, workers[0], `for i in $(seq 40); do sleep 106 & done; touch $GORUN_PROGRESS_FILE; wait`)
	if list := processesOf(workers[0]); len(list) != maxProcesses || list[0] != workers[0].Pid {
		t.Errorf("%v: want %d first, of %d", list, workers[0].Pid, maxProcesses)
	}
}

// TestEndedWorker: nobody looks at the process that has the number of a worker that has ended.
func TestEndedWorker(t *testing.T) {
	workers := newWorkers(t, 1)
	workers[0].Pid = 0
	dir := t.TempDir()
	r, err := Collect(t.Context(), workers, dir)
	if err != nil || r.Doing[0] != "" || r.Dumps[0] {
		t.Errorf("%+v, %v", r, err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("there is %v", files)
	}
}
