package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/scripts/flood/attack"
)

var (
	floodSize  = flag.Int("flood-size", 150, "how many flood each port of a job")
	floodKinds = flag.String("flood-kinds", "silent,unproven", "what they do, of silent, slow, unproven, garbage, scan and none")
	floodFiles = flag.Int("flood-files", 4096, "how many descriptors each process of the job may have")
	floodPause = flag.Duration("flood-pause", 0, "how long one that was dropped stays away")
)

// TestFloodedJob: whatever strangers do at all ports of all its processes, a job begins, gets over the death of a worker and of an
// agent, and ends well, and nobody is blamed who did nothing.
func TestFloodedJob(t *testing.T) {
	if testing.Short() {
		t.Skip("seven processes at a time")
	}
	for _, name := range strings.Split(*floodKinds, ",") {
		t.Run(name, func(t *testing.T) { holdUnder(t, name, *floodFiles) })
	}
	t.Run("256 descriptors", func(t *testing.T) { holdUnder(t, "silent", 256) })
}

// holdUnder lets a job live under an attack of that name.
func holdUnder(t *testing.T, name string, files int) {
	t.Helper()
	how, ok := attack.Attacks[name]
	if !ok && name != "none" {
		t.Fatalf("there is no attack %q", name)
	}
	f := attack.Start(how, *floodPause)
	defer f.Stop()
	release := filepath.Join(t.TempDir(), "release")
	j := floodedJob(t, release, files)
	for _, n := range j.nodes {
		if ok {
			f.Job(n.cmd.Process.Pid, *floodSize)
		}
	}
	begun := time.Now()
	worker := j.up(6, "")
	t.Logf("begins after %v", time.Since(begun).Round(time.Millisecond))

	time.Sleep(time.Second) // for the flood to rise
	begun = time.Now()
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.up(6, "1")
	t.Logf("gets over a worker's death after %v", time.Since(begun).Round(time.Millisecond))

	time.Sleep(time.Second)
	begun = time.Now()
	last := j.nodes[2]
	last.signal(syscall.SIGKILL)
	for last.next() { // until its workers have ended, too
	}
	j.nodes = j.nodes[:2]
	j.up(4, "2")
	t.Logf("gets over an agent's death after %v", time.Since(begun).Round(time.Millisecond))

	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	begun = time.Now()
	for i, n := range j.nodes {
		said := n.end(0)
		if strings.Contains(said, "turned away") && strings.Contains(said, "broken pipe") {
			t.Errorf("a job that succeeds says\n%s", said)
		}
		if lines := strings.Count(said, "\n"); lines > 200 {
			t.Errorf("it says %d lines", lines)
		}
		t.Logf("node %d:\n%s", i, said)
	}
	t.Logf("ends after %v; %d connections were made, %d are open", time.Since(begun).Round(time.Millisecond), f.Calls.Load(), f.Held.Load())
}

// A flooded job is three agents that host the etcd together, with two workers each. A process may have so many files.
type flooded struct {
	t     *testing.T
	nodes []*node
}

func floodedJob(t *testing.T, release string, files int) *flooded {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	endpoints, token := loopback(t, 3), tokenFile(t, secretToken)
	j := &flooded{t: t}
	flags := []string{
		"--nnodes=2:3", "--nproc-per-node=2", "--max-restarts=3", "--rdzv-backend=embedded", "--rdzv-endpoint=" + endpoints,
		"--rdzv-token-file=" + token, "--rdzv-conf=last_call_timeout=20", "bash", "-c", "exec -a ranks " + exe + " steady " + release,
	}
	limited := fmt.Sprintf(`ulimit -n %d && exec -a gorun %s "$@"`, files, exe)
	for range 3 {
		j.nodes = append(j.nodes, startAs(t, 2*patience, "/bin/bash", append([]string{"bash", "-c", limited, "bash"}, flags...)...))
	}
	return j
}

var upLine = regexp.MustCompile(`up: (\d+) ranks in round (\S+), pid (\d+)`)

// up waits until so many ranks compute, in a round after that which is given, and returns the PID of one of the last node.
func (j *flooded) up(ranks int, after string) (pid int) {
	j.t.Helper()
	for _, n := range j.nodes {
		for workers := 0; workers < 2; {
			if !n.next() {
				j.t.Fatalf("a node ends; it says\n%s", n.text.String())
			}
			if m := upLine.FindStringSubmatch(n.said.Text()); m != nil && m[1] == fmt.Sprint(ranks) && m[2] > after {
				workers++
				pid, _ = strconv.Atoi(m[3])
			}
		}
	}
	return pid
}
