package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestRanksOfANodeLeave: ranks exit with code 0 while ranks of another node need them, and rejoin. Those that have exited are started again,
// also if they were all ranks of their node. That costs one restart, on all nodes together.
func TestRanksOfANodeLeave(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"one rank": "leaves-early 3", "all ranks": "leaves-early 2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newReplacingJobOf(t, program, "2", "ttl=20,join_timeout=60", "--max-restarts=1")
			a := j.start()
			a.expect("waiting: ")
			b := j.start()
			a.expect(`replace those that have ended: rank [012] on .*: revoked its round: .*rank [23] \(pid \d+ on .*\): .*; restart 1 of 1$`)
			for _, n := range []*node{a, b} {
				for range 2 {
					n.expect(`\] done in round 2$`)
				}
				n.end(0)
			}
		})
	}
}

// TestNoRestartForRanksThatLeave: the job ends on both nodes, and names the rank that has left.
func TestNoRestartForRanksThatLeave(t *testing.T) {
	t.Parallel()
	j := newReplacingJobOf(t, "leaves-early 2", "2", "ttl=20,join_timeout=60", "--log-dir="+t.TempDir()) // for what workers write about their errors
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	for _, n := range []*node{a, b} {
		n.expect(`revoked its round: .*rank [23] \(pid `) // in the summary or, on the other node, in one line
		n.end(1)
	}
}

// TestLostNodeIsNoRevocation: the ranks of the other node rejoin, perhaps before anybody knows that the node is lost. That costs no restart.
func TestLostNodeIsNoRevocation(t *testing.T) {
	t.Parallel()
	j := newReplacingJobOf(t, "goes-on", "2", "ttl=20,join_timeout=60")
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	for range 2 {
		a.expect("goes on in round 1")
	}
	spare := j.start()
	spare.expect("waiting: .*spares: 1")
	b.signal(syscall.SIGKILL)
	b.end(-1)
	for _, n := range []*node{a, spare} {
		for range 2 {
			n.expect(`\] done in round 2$`)
		}
		n.end(0)
	}
}

// TestFrozenRankOfTwoNodes: rank 0, which serves the store, stops for ever, and the others wait for it for less than --replace-timeout. All of
// them live on, however many rounds that takes.
func TestFrozenRankOfTwoNodes(t *testing.T) {
	testkit.Nightly(t, "ranks have to wait for it")
	t.Parallel()
	j := newReplacingJobOf(t, "freezes 0", "2", "ttl=20,join_timeout=60", "--max-restarts=5", "--replace-timeout=3")
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	for _, n := range []*node{a, b} {
		for range 2 {
			n.expect(`\] done in round [3-6]$`)
		}
		if said := n.end(0); strings.Contains(said, "failed (exitcode: 1)") || strings.Contains(said, "failed (exitcode: 2)") {
			t.Errorf("a rank does not live on: %s", said)
		}
	}
}
