package main

import (
	"fmt"
	"os"
	"regexp"
	"syscall"
	"testing"
)

// A replacing job is one of several nodes with an etcd of its own, whose workers follow its rounds.
type replacingJob struct {
	t    *testing.T
	args []string
}

func newReplacingJob(t *testing.T, nnodes, conf string, more ...string) *replacingJob {
	t.Helper()
	return newReplacingJobOf(t, "follows", nnodes, conf, more...)
}

// newReplacingJobOf is newReplacingJob with workers that do something else.
func newReplacingJobOf(t *testing.T, program, nnodes, conf string, more ...string) *replacingJob {
	t.Helper()
	endpoint, token := "--rdzv-endpoint="+loopback(t, 1), "--rdzv-token-file="+tokenFile(t, secretToken)
	startNodeFor(t, 10*patience, "etcd", endpoint, token).expect("serving: ")
	args := []string{"--nnodes=" + nnodes, "--nproc-per-node=2", "--on-failure=replace", "--rdzv-backend=etcd", "--rdzv-id=j", endpoint, token, "--rdzv-conf=" + conf}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append(append(args, more...), "bash", "-c", "exec -a ranks "+exe+" "+program)
	return &replacingJob{t, args}
}

func (j *replacingJob) start() *node {
	j.t.Helper()
	return startNode(j.t, j.args...)
}

// both starts the two nodes that the job needs. It returns their workers as well.
func (j *replacingJob) both() (a, b *node, ofA, ofB [2]int) {
	j.t.Helper()
	a = j.start()
	a.expect("waiting: ")
	b = j.start()
	return a, b, a.workers(1, 0, 4), b.workers(1, 2, 4)
}

// kill kills the agent of a node.
func (n *node) kill() {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	n.end(-1)
}

// liveOn checks that the workers of a node have come into another round.
func (n *node) liveOn(before [2]int, round, first, world int) {
	n.t.Helper()
	if after := n.workers(round, first, world); after != before {
		n.t.Errorf("the workers were %v, and are %v", before, after)
	}
}

// name is how the rendezvous names a node: HOST/PID.
func (n *node) name() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, n.cmd.Process.Pid)
}

// gone is what workers say when the round is over because a node of rank 2 and 3 is gone.
func gone(round int, n *node, how string) string {
	its := regexp.QuoteMeta("its node " + n.name() + " " + how)
	return fmt.Sprintf(`round %d is over: 2 \(0, exit code 0\): %s; 3 \(1, exit code 0\): %s\.$`, round, its, its)
}

// TestWorkerAndAgentDie at once, on two nodes, and a third one takes the place of the second. Only the worker costs a restart.
func TestWorkerAndAgentDie(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "2", "ttl=20,join_timeout=60", "--max-restarts=1")
	a, b, before, _ := j.both()
	spare := j.start()
	spare.expect("waiting: .*spares: 1")
	b.signal(syscall.SIGKILL)
	kill(t, before[0])
	now, _ := a.settled(4, before[1], before[0])
	if now[0] == before[0] {
		t.Errorf("the workers were %v, and are %v", before, now)
	}
	spare.expect(`is rank 2 of 4 in round`)
	b.end(-1)
	stop(a, spare)
}

// TestScaleUpWhenReplacing: with --scale-up=on-restart, a node gets in when a worker is replaced; with never, it does not.
func TestScaleUpWhenReplacing(t *testing.T) {
	t.Parallel()
	for policy, world := range map[string]int{"on-restart": 4, "never": 2} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			j := newReplacingJob(t, "1:2", "ttl=20,join_timeout=60,last_call_timeout=1", "--max-restarts=1", "--scale-up="+policy)
			a := j.start()
			before := a.workers(1, 0, 2)
			b := j.start()
			b.expect("waiting: round 1 is running with 1 of 1 to 2 nodes; others get in ")
			kill(t, before[1])
			if now := a.workers(2, 0, world); now[0] != before[0] || now[1] == before[1] {
				t.Errorf("the workers were %v, and are %v", before, now)
			}
			if policy == "never" {
				stop(a)
				b.signal(syscall.SIGTERM)
				b.end(143)
				return
			}
			b.workers(2, 2, world)
			stop(a, b)
		})
	}
}
