package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// member has a client for one of the endpoints, and the node that is there.
type member struct {
	client *clientv3.Client
	node   int
}

func (j *hostedJob) members() (list []member) {
	j.t.Helper()
	for _, e := range j.endpoints {
		list = append(list, member{j.client(e), j.owner(e)})
	}
	return list
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
		if slices.Contains(listening(j.t, n.cmd.Process.Pid), addr) {
			return i
		}
	}
	j.t.Fatalf("nobody listens at %s", addr)
	return -1
}

// leader is the node that decides on rounds.
func (j *hostedJob) leader(etcd *clientv3.Client) int {
	j.t.Helper()
	answer, err := etcd.Get(j.bounded(), "/gorun/v1/hosted/job/leader")
	if err != nil || len(answer.Kvs) == 0 {
		j.t.Fatalf("the leader: %v, %v", answer, err)
	}
	var doc struct{ Is struct{ Door string } }
	if err := json.Unmarshal(answer.Kvs[0].Value, &doc); err != nil {
		j.t.Fatal(err)
	}
	return j.owner(doc.Is.Door)
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

// leases are those of the nodes, by their keys.
func (j *hostedJob) leases(etcd *clientv3.Client) map[string]int64 {
	j.t.Helper()
	answer, err := etcd.Get(j.bounded(), "/gorun/v1/hosted/nodes/", clientv3.WithPrefix())
	if err != nil {
		j.t.Fatal(err)
	}
	leases := make(map[string]int64)
	for _, kv := range answer.Kvs {
		leases[string(kv.Key)] = kv.Lease
	}
	return leases
}

// closeClients closes the clients, for which hosts would wait.
func closeClients(list []member) {
	for _, m := range list {
		_ = m.client.Close()
	}
}

// choose returns a member that leads the job, or does not, and makes it the leader of etcd, or another one.
func (j *hostedJob) choose(list []member, leadsJob, leadsEtcd bool) int {
	j.t.Helper()
	leader := j.leader(list[0].client)
	chosen := slices.IndexFunc(list, func(m member) bool { return (m.node == leader) == leadsJob })
	to := chosen
	if !leadsEtcd {
		to = (chosen + 1) % len(list)
	}
	var id, leads uint64
	from := 0
	for i, m := range list {
		s, err := m.client.Status(j.bounded(), m.client.Endpoints()[0])
		if err != nil {
			j.t.Fatal(err)
		}
		if i == to {
			id = s.Header.MemberId
		}
		if s.Header.MemberId == s.Leader {
			from, leads = i, s.Leader
		}
	}
	if leads != id {
		if _, err := list[from].client.MoveLeader(j.bounded(), id); err != nil {
			j.t.Fatal(err)
		}
	}
	return chosen
}

// silence is how long a member of an etcd may be stopped until etcd's client gives it up.
const silence = 13 * time.Second

// TestHostFallsSilent: whatever a host was, the others go on without it soon after its lease is over and its connections have been given up,
// and none of them loses its own lease.
func TestHostFallsSilent(t *testing.T) {
	testkit.Nightly(t, "it takes more than ten seconds")
	t.Parallel()
	for name, leads := range map[string]struct{ job, etcd bool }{
		"leads nothing": {},
		"leads etcd":    {etcd: true},
		"leads the job": {job: true},
		"leads both":    {job: true, etcd: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 6 * time.Second
			j := startHostedJob(t, ttl, 2*patience)
			list := j.members()
			chosen := j.choose(list, leads.job, leads.etcd)
			victim, other := list[chosen].node, list[(chosen+1)%len(list)].client
			before := j.leases(other)

			begun := time.Now()
			j.nodes[victim].signal(syscall.SIGSTOP)
			j.expectAll(hostedNodes-1, victim)
			took := time.Since(begun)
			t.Logf("%.2f times the TTL", took.Seconds()/ttl.Seconds())
			if took > silence+ttl {
				t.Errorf("the others have gone on after %v", took)
			}
			after := j.leases(other)
			if len(after) != hostedNodes-1 {
				t.Errorf("leases of %d nodes: want %d", len(after), hostedNodes-1)
			}
			maps.DeleteFunc(before, func(key string, _ int64) bool { return after[key] == 0 })
			if !maps.Equal(before, after) {
				t.Errorf("nodes had leases %v, and have %v", before, after)
			}

			closeClients(list)
			j.nodes[victim].signal(syscall.SIGKILL)
			j.nodes[victim].end(-1)
			j.finish()
			for i, n := range j.nodes {
				if i != victim {
					n.end(0)
				}
			}
		})
	}
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

// TestEtcdIsKilled: of three that are hosted by hand one is killed, which leaves nothing, and started again by the same command.
// Then another one is.
func TestEtcdIsKilled(t *testing.T) {
	testkit.Nightly(t, "it takes more than ten seconds")
	t.Parallel()
	args := []string{"etcd", "--rdzv-endpoint=" + loopback(t, 3), "--rdzv-token-file=" + tokenFile(t, secretToken)}
	var nodes []*node
	for range 3 {
		nodes = append(nodes, startNode(t, args...))
	}
	for _, n := range nodes {
		n.expect("serving: ")
	}
	for i := range 2 {
		nodes[i].signal(syscall.SIGKILL)
		nodes[i].end(-1)
		nodes[i] = startNode(t, args...)
		nodes[i].expect("serving: ")
	}
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
		n.end(0)
	}
}
