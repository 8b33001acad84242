package hosttest

import (
	"io"
	"strconv"
	"testing"
)

// TestQuota: a process that always computes gets the quota, and no more.
func TestQuota(t *testing.T) {
	t.Parallel()
	python := Need(t, "python3", "python3")
	m := NewMachines(t, Config{Name: "slow"})[0]
	cmd := m.Command(python, "-c", `
import sys, time
sys.stdin.read()
begun, used = time.time(), time.process_time()
while time.time() < begun + 1: pass
print((time.process_time() - used) / (time.time() - begun), end="")
`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(cmd); err != nil {
		t.Fatal(err)
	}
	m.Quota(t, 0.2)
	_ = stdin.Close()
	said, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := strconv.ParseFloat(string(said), 64); err != nil || got < 0.01 || got > 0.25 {
		t.Errorf("it got %q of a processor", said)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
