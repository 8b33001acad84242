package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/scripts/flood/attack"
)

func init() { commands["flood"] = attack.Main }

var (
	floodSize  = flag.Int("flood-size", 150, "how many flood each port of a job")
	floodKinds = flag.String("flood-kinds", "silent,unproven", "what they do, of silent, slow, unproven, garbage and scan")
	floodFiles = flag.Int("flood-files", 4096, "how many descriptors each process of the job may have")
	// With these two, strangers cost the job as little time as if they had machines of their own.
	floodIdle  = flag.Bool("flood-idle", false, "let strangers run only when nobody else wants a processor")
	floodPause = flag.Duration("flood-pause", 0, "how long a stranger that was dropped stays away")
	floodTurns = flag.Int("flood-turns", 1, "how often the job runs alone, and under each attack")
)

// floodPatience is for what a machine that others use does in a second or two. It is less than a lease lasts.
const floodPatience, floodLease = 40 * time.Second, 120 * time.Second

// TestFloodedJob: whatever strangers do at all ports of all its processes, a job begins, gets over the death of a worker and of an
// agent long before a lease is over, and ends well; nobody is blamed who did nothing, and the agent's death costs no restart.
func TestFloodedJob(t *testing.T) {
	skipIfShort(t, "seven processes at a time")
	if *floodTurns < 1 {
		t.Fatalf("-flood-turns=%d: give it a number above 0", *floodTurns)
	}
	alone := "nobody"
	kinds := strings.Split(*floodKinds, ",")
	if *floodTurns > 1 { // to compare with
		kinds = append([]string{alone}, kinds...)
	}
	took := make(map[string][]times)
	for range *floodTurns {
		for _, kind := range kinds {
			t.Run(kind, func(t *testing.T) {
				attack := kind
				if kind == alone {
					attack = ""
				}
				took[kind] = append(took[kind], holdUnder(t, attack, *floodFiles))
			})
		}
	}
	t.Run("256 descriptors", func(t *testing.T) { holdUnder(t, "silent", 256) })
	for _, kind := range kinds {
		t.Logf("%-10s %v", kind, medians(took[kind]))
	}
}

// times are how long a job takes to begin, to get over a worker's death, and over an agent's.
type times [3]time.Duration

func (t times) String() string {
	return fmt.Sprintf("begins after %v, gets over a worker's death after %v, over an agent's after %v",
		t[0].Round(time.Millisecond), t[1].Round(time.Millisecond), t[2].Round(time.Millisecond))
}

func medians(list []times) (m times) {
	for i := range m {
		var one []time.Duration
		for _, t := range list {
			one = append(one, t[i])
		}
		slices.Sort(one)
		if len(one) > 0 {
			m[i] = one[len(one)/2]
		}
	}
	return m
}

// holdUnder lets a job live under an attack; empty: there is none.
func holdUnder(t *testing.T, kind string, files int) (took times) {
	t.Helper()
	release := newRelease(t)
	j := floodedJob(t, release, files)
	rises := func() {}
	if kind != "" {
		rises = j.flood(kind)
	}
	begun := time.Now()
	worker := j.up(6, 0)
	took[0] = time.Since(begun)

	rises()
	begun = time.Now()
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.up(6, 1)
	took[1] = time.Since(begun)

	rises()
	begun = time.Now()
	last := j.nodes[2]
	last.signal(syscall.SIGKILL)
	for last.next() { // until its workers have ended, too
	}
	j.nodes = j.nodes[:2]
	j.up(4, 2)
	took[2] = time.Since(begun)

	for i, what := range []string{"begin", "get over a worker's death", "get over an agent's death"} {
		if took[i] > floodPatience {
			t.Errorf("it takes %v to %s", took[i], what)
		}
	}
	t.Log(took)
	release.create(t)
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
	return took
}

// A flooded job is three agents that host the etcd together, with two workers each. A process may have so many files.
type flooded struct {
	t     *testing.T
	nodes []*node
}

func floodedJob(t *testing.T, release release, files int) *flooded {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	endpoints, token := loopback(t, 3), tokenFile(t, secretToken)
	j := &flooded{t: t}
	flags := []string{
		"--nnodes=2:3", "--nproc-per-node=2", "--max-restarts=1", "--rdzv-backend=embedded", "--rdzv-endpoint=" + endpoints,
		"--rdzv-token-file=" + token, fmt.Sprintf("--rdzv-conf=last_call_timeout=20,ttl=%v", floodLease.Seconds()), "bash", "-c", "exec -a ranks " + exe + " steady " + string(release),
	}
	limited := fmt.Sprintf(`ulimit -n %d && exec -a gorun %s "$@"`, files, exe)
	for range 3 {
		j.nodes = append(j.nodes, startAs(t, 4*patience+time.Duration(*floodSize)*100*time.Millisecond, "/bin/bash", append([]string{"bash", "-c", limited, "bash"}, flags...)...))
	}
	return j
}

// flood begins an attack. rises waits until half of the strangers, who are at more and more ports, have called.
func (j *flooded) flood(kind string) (rises func()) {
	j.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	policy := "--other"
	if *floodIdle {
		policy = "--idle"
	}
	c := exec.Command("chrt", policy, "0", "bash", "-c", `exec -a flood "$@"`, "bash", exe,
		"-n", strconv.Itoa(*floodSize), "-attack", kind, "-pause", floodPause.String())
	c.Stderr = os.Stderr
	for _, n := range j.nodes {
		c.Args = append(c.Args, strconv.Itoa(n.cmd.Process.Pid))
	}
	out, err := c.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		j.t.Fatal(err)
	}
	last, said := "", bufio.NewScanner(out)
	j.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		for said.Scan() {
		}
		if err := c.Wait(); err != nil {
			j.t.Error(err)
		}
		j.t.Log("of the strangers " + last)
	})
	return func() {
		j.t.Helper()
		for said.Scan() {
			var open, ports, calls int
			last = said.Text()
			if _, err := fmt.Sscanf(last, "%d are open at %d ports, of %d until now", &open, &ports, &calls); err != nil {
				j.t.Fatalf("%q: %v", last, err)
			}
			if calls > ports**floodSize/2 {
				return
			}
		}
		j.t.Fatal("the flood has ended")
	}
}

var upLine = regexp.MustCompile(`up: (\d+) ranks in round (\d+), pid (\d+)`)

// up waits until so many ranks compute, in a round after that which is given, and returns the PID of one of the last node.
func (j *flooded) up(ranks, after int) (pid int) {
	j.t.Helper()
	for _, n := range j.nodes {
		for workers := 0; workers < 2; {
			if !n.next() {
				j.t.Fatalf("a node ends; it says\n%s", n.text.String())
			}
			m := upLine.FindStringSubmatch(n.said.Text())
			if m == nil || m[1] != strconv.Itoa(ranks) {
				continue
			}
			if round, _ := strconv.Atoi(m[2]); round > after {
				workers++
				pid, _ = strconv.Atoi(m[3])
			}
		}
	}
	return pid
}
