package main

import (
	"syscall"
	"testing"
)

// TestRanksOfANodeLeave: all ranks of a node exit with code 0 while ranks of another node need them, and rejoin. Those that have
// exited are started again. That costs one restart, on all nodes together.
func TestRanksOfANodeLeave(t *testing.T) {
	t.Parallel()
	j := newReplacingJobOf(t, "leaves-early 2", "2", "ttl=20,join_timeout=60", "--max-restarts=1")
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	a.expect(`replace those that have ended: rank [01] on .*: revoked its round: .*rank [23] \(pid \d+ on .*\): .*; restart 1 of 1$`)
	for _, n := range []*node{a, b} {
		for range 2 {
			n.expect(`\] done in round 2$`)
		}
		n.end(0)
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
