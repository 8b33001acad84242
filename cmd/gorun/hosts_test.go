package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous/embedded"
)

// A hostedJob is a job of four nodes, of which three host its etcd.
type hostedJob struct {
	t         *testing.T
	endpoints []string
	args      []string
	life      time.Duration // of a node, at most
	nodes     []*node
	release   release
	starts    int // of nodes
}

const hostedNodes = 4

// startHostedJob returns when all workers have started.
func startHostedJob(t *testing.T, ttl, life time.Duration) *hostedJob {
	t.Helper()
	endpoints := loopback(t, 3)
	j := &hostedJob{t: t, endpoints: strings.Split(endpoints, ","), life: life, release: newRelease(t)}
	j.args = []string{
		fmt.Sprintf("--nnodes=1:%d", hostedNodes), "--rdzv-backend=embedded", "--rdzv-endpoint=" + endpoints, "--rdzv-id=hosted",
		"--rdzv-token-file=" + tokenFile(t, secretToken),
		fmt.Sprintf("--rdzv-conf=ttl=%v,last_call_timeout=60", ttl.Seconds()),
		"sh", "-c", "echo one of $WORLD_SIZE; " + j.release.await(),
	}
	for i := range j.endpoints {
		j.nodes = append(j.nodes, j.start(i))
	}
	j.nodes[0].expect("waiting: round 1: 3 of 1 to 4 nodes") // one of them leads the job
	j.nodes = append(j.nodes, j.start(len(j.endpoints)))
	j.expectAll(hostedNodes)
	return j
}

// start starts a node on a host of its own, as far as its name goes: a host whose node is lost soon after it has joined is
// kept out for a while. Only root can give names.
func (j *hostedJob) start(i int) *node {
	j.t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		return startNodeFor(j.t, j.life, j.args...)
	}
	exe, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	j.starts++
	named := fmt.Sprintf(`hostname node%d-%d && exec -a gorun %s "$@"`, i, j.starts, exe)
	return startAs(j.t, j.life, unshare, append([]string{"unshare", "--uts", "bash", "-c", named, "bash"}, j.args...)...)
}

// expectAll waits until every node but some has started its worker in a world of that size.
func (j *hostedJob) expectAll(world int, but ...int) {
	j.t.Helper()
	for i, n := range j.nodes {
		if !slices.Contains(but, i) {
			n.expect(fmt.Sprintf("one of %d$", world))
		}
	}
}

// client is one of the member at an endpoint.
func (j *hostedJob) client(endpoint string) *clientv3.Client {
	j.t.Helper()
	credentials, err := embedded.ClientTLS([]byte(secretToken))
	if err != nil {
		j.t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: credentials, Logger: zap.NewNop()})
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = c.Close() })
	return c
}

// owner is the node that listens at addr.
func (j *hostedJob) owner(addr string) int {
	j.t.Helper()
	for i, n := range j.nodes {
		if slices.Contains(listening(j.t, n.cmd.Process.Pid), netip.MustParseAddrPort(addr)) {
			return i
		}
	}
	j.t.Fatalf("nobody listens at %s", addr)
	return -1
}

// finish lets workers end.
func (j *hostedJob) finish() {
	j.t.Helper()
	j.release.create(j.t)
}

func (j *hostedJob) bounded() context.Context {
	ctx, cancel := context.WithTimeout(j.t.Context(), patience)
	j.t.Cleanup(cancel)
	return ctx
}

// deaths says how many hosts are killed; empty: as many as show that each may be, and again one that has come back.
const deaths = "GORUN_TEST_HOST_DEATHS"

// TestHostsDieInTurn: hosts are killed one after the other, and started again by the same command. Each becomes a member of
// the etcd again, so that the next one may die, and the job goes on.
func TestHostsDieInTurn(t *testing.T) {
	t.Parallel()
	n := testkit.UnlessShort(4, 2)
	if text := os.Getenv(deaths); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	j := startHostedJob(t, 10*time.Second, time.Duration(n)*patience)
	hosts := make([]int, len(j.endpoints))
	for i, e := range j.endpoints {
		hosts[i] = j.owner(e)
	}
	for death := range n {
		e := death % len(hosts)
		victim := hosts[e]
		j.nodes[victim].signal(syscall.SIGKILL)
		j.nodes[victim].end(-1)
		j.expectAll(hostedNodes-1, victim)
		j.nodes[victim] = j.start(victim)
		j.expectAll(hostedNodes)
		j.awaitMembers(j.endpoints[(e+1)%len(hosts)])
	}
	j.finish()
	for _, node := range j.nodes {
		node.end(0)
	}
}

// awaitMembers waits until every endpoint has a member with a vote.
func (j *hostedJob) awaitMembers(by string) {
	j.t.Helper()
	c := j.client(by)
	defer func() { _ = c.Close() }()
	for ctx := j.bounded(); ; time.Sleep(50 * time.Millisecond) { // nobody tells
		answer, err := c.MemberList(ctx)
		if err != nil {
			j.t.Fatal(err)
		}
		voters := 0
		for _, m := range answer.Members {
			if !m.IsLearner && len(m.ClientURLs) > 0 {
				voters++
			}
		}
		if voters == len(j.endpoints) && len(answer.Members) == voters {
			return
		}
	}
}

// TestTwoHostsDie: without a majority nobody becomes a member again. Who waits for one says so, and gives up in time.
func TestTwoHostsDie(t *testing.T) {
	t.Parallel()
	args := []string{
		"--nnodes=1:3", "--rdzv-backend=embedded", "--rdzv-endpoint=" + loopback(t, 3), "--rdzv-token-file=" + tokenFile(t, secretToken),
		"--rdzv-conf=ttl=5,last_call_timeout=20,join_timeout=8", "sh", "-c", "echo one of $WORLD_SIZE; exec sleep 1000",
	}
	var nodes []*node
	for range 3 {
		nodes = append(nodes, startNode(t, args...))
	}
	for _, n := range nodes {
		n.expect("one of 3$")
	}
	for _, n := range nodes[:2] {
		n.signal(syscall.SIGKILL)
	}
	for _, n := range nodes[:2] {
		n.end(-1)
	}
	said := startNode(t, args...).end(75)
	const want = "it has lost its data, and cannot become a member again: the others are too few to decide (two of 3 must have their data)"
	if !strings.Contains(said, "waiting: ") || strings.Count(said, want) != 2 { // while it waits, and when it gives up
		t.Errorf("it says\n%s", said)
	}
	nodes[2].signal(syscall.SIGTERM)
	nodes[2].end(143)
}
