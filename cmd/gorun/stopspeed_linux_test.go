package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

var stopNodes = flag.Int("stop-nodes", 0, "how many nodes TestStopSpeed runs on this machine; 0: it does not run")

// TestStopSpeed measures how long gorun stop takes, and how long after it and the workers' grace the last node of the job ends. The
// workers ignore SIGTERM. It judges only that all ends.
func TestStopSpeed(t *testing.T) {
	if *stopNodes == 0 {
		t.Skip("measures with -stop-nodes=64")
	}
	const grace = 2 * time.Second
	gorun := buildGorun(t)
	port := testkit.ReservedPort(t)
	dir, id := t.TempDir(), fmt.Sprint("stop-speed-", os.Getpid())
	token := "GORUN_TOKEN=" + strings.Repeat("0123456789abcdef", 2)
	nodes := make([]*exec.Cmd, *stopNodes)
	for i := range nodes {
		nodes[i] = exec.CommandContext(t.Context(), gorun, fmt.Sprint("--nnodes=", *stopNodes), fmt.Sprint("--node-rank=", i), "--rdzv-backend=embedded",
			fmt.Sprint("--rdzv-endpoint=127.0.0.1:", port), "--rdzv-id="+id, fmt.Sprint("--shutdown-timeout=", grace.Seconds()),
			"sh", "-c", `trap "" TERM; touch "$0/$RANK"; while :; do sleep 1; done`, dir)
		nodes[i].Env = append(os.Environ(), token)
		if err := nodes[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	for running := 0; running < len(nodes); time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if running = len(files); err != nil || time.Since(begun) > 5*patience {
			t.Fatalf("%d of %d workers run (%v)", running, len(nodes), err)
		}
	}
	t.Logf("%d nodes: all workers run after %v", len(nodes), time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	stop := exec.CommandContext(t.Context(), gorun, "stop", id)
	stop.Env = append(os.Environ(), token)
	out, err := stop.CombinedOutput()
	if lines := strings.Count(string(out), "is stopping on"); err != nil || lines != len(nodes) {
		t.Errorf("gorun stop: %v, %d nodes are stopping:\n%s", err, lines, out)
	}
	said := time.Since(begun)
	for i, node := range nodes {
		if _ = node.Wait(); node.ProcessState.ExitCode() != 143 {
			t.Errorf("node %d: %v, want exit code 143", i, node.ProcessState)
		}
	}
	t.Logf("gorun stop returned after %v; the last node ended %v after the grace", said.Round(time.Millisecond), (time.Since(begun) - grace).Round(time.Millisecond))
}
