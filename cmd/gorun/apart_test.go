package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/env/testing/testkit"
)

// An apartJob has each node on a host of its own, named node0 and so on, and an etcd on another. Some of the hosts lose each other,
// and nobody loses the etcd.
type apartJob struct {
	t       *testing.T
	network *hosts.Network
	args    []string
	nodes   map[int]*node
	release release
}

const etcdAlone = -1 // number of the host that has the etcd

// newApartJob prepares a job whose workers run one of the rankPrograms, until the file j.release is there.
func newApartJob(t *testing.T, nnodes string, maxRestarts int, program string) *apartJob {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		testkit.Cannot(t, "%v", err)
	}
	network := newNetwork(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := &apartJob{t: t, network: network, nodes: make(map[int]*node), release: newRelease(t)}
	endpoint, token := "--rdzv-endpoint="+hosts.Addr(etcdAlone)+":2379", "--rdzv-token-file="+tokenFile(t, secretToken)
	j.args = []string{
		unshare, "--uts", "bash", "-c", "hostname $0 && exec -a gorun " + exe + ` "$@"`, "HOST",
		"--nnodes=" + nnodes, fmt.Sprint("--max-restarts=", maxRestarts), "--rdzv-backend=etcd", "--rdzv-id=apart", endpoint, token, "--rdzv-conf=ttl=4,last_call_timeout=3",
		"bash", "-c", "exec -a ranks " + exe + " " + program + " " + string(j.release),
	}
	j.start(etcdAlone, unshare, "bash", "-c", "exec -a gorun "+exe+` "$@"`, "bash", "etcd", endpoint, token)
	j.nodes[etcdAlone].expect("serving: ")
	return j
}

func (j *apartJob) start(host int, args ...string) {
	j.t.Helper()
	start := func(cmd *exec.Cmd) error { return j.network.Start(cmd, host) }
	j.nodes[host] = startBy(j.t, start, 4*patience, args[0], args...)
}

// join starts nodes, which ask for the node rank that their host has.
func (j *apartJob) join(list ...int) {
	j.t.Helper()
	for _, host := range list {
		args := append([]string(nil), j.args...)
		args[5] = fmt.Sprint("node", host)
		rank := append(args[:6:6], fmt.Sprint("--node-rank=", host))
		j.start(host, append(rank, args[6:]...)...)
	}
}

// up waits until the workers of these nodes compute together.
func (j *apartJob) up(round int, list ...int) {
	j.t.Helper()
	for _, host := range list {
		j.nodes[host].expect(fmt.Sprintf("up: %d ranks in round %d,", len(list), round))
	}
}

func (j *apartJob) check(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// finish lets all workers end, and returns what each node has said.
func (j *apartJob) finish() map[int]string {
	j.t.Helper()
	j.release.create(j.t)
	said := make(map[int]string)
	for host, n := range j.nodes {
		if host != etcdAlone {
			said[host] = n.end(0)
		}
	}
	return said
}

// wantSaid wants a line with all parts.
func wantSaid(t *testing.T, who int, said string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(said) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			return
		}
	}
	t.Errorf("node %d has no line with %q; it says\n%s", who, parts, said)
}

// TestNodesLoseEachOther where there is room for one less: the one with the lower rank goes on with all others, the other says why
// it waits, and comes back when they reach each other. That uses up no restart.
func TestNodesLoseEachOther(t *testing.T) {
	t.Parallel()
	j := newApartJob(t, "2:3", 0, "patient")
	j.join(0, 1, 2)
	j.up(1, 0, 1, 2)
	j.check(j.network.Isolate(1, 2))
	begun := time.Now()
	j.up(2, 0, 1)
	t.Logf("the others go on after %v", time.Since(begun).Round(time.Second))
	j.nodes[2].expect("waiting: round 2 is running with 2 of 2 to 3 nodes; .*cannot reach")
	j.check(j.network.Rejoin(1, 2))
	j.up(3, 0, 1, 2)
	said := j.finish()
	for host := range 2 {
		wantSaid(t, host, said[host], "node1/", " cannot reach node", " at 10.77.0.", "; going on without node2/")
	}
}

// TestNodesNeverReachEachOther: it is told after a second whom a rank waits for. The round ends when it has waited for half a
// minute, which uses up no restart.
func TestNodesNeverReachEachOther(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "it takes half a minute, as TestNodesLoseEachOther does")
	j := newApartJob(t, "2:3", 0, "patient")
	j.check(j.network.Isolate(1, 2))
	j.join(0, 1, 2)
	j.nodes[1].expect("WARN waiting for a connection to_rank=2 at=" + hosts.Addr(2) + ":")
	j.up(2, 0, 1)
	j.nodes[2].expect("waiting: round 2 is running with 2 of 2 to 3 nodes; .*cannot reach")
	j.check(j.network.Rejoin(1, 2))
	j.up(3, 0, 1, 2)
	j.finish()
}
