package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestSurvivorsWaitForNode: too few nodes are left, and the workers wait for another one, or until there has been time enough.
func TestSurvivorsWaitForNode(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "2", "ttl=20,join_timeout=8")
	a, b, before, _ := j.both()
	b.kill()
	a.expect(gone(1, b, "is lost"))
	lost := "going on in another round: " + b.name() + " is lost\n"
	b = j.start()
	a.liveOn(before, 2, 0, 4)
	b.workers(2, 2, 4)
	b.kill()
	a.expect(gone(2, b, "is lost"))
	want := "gorun: the job is closed: not enough nodes: round 3: 1 of 2 nodes after 8s; " + b.name() + " is gone\n"
	if said := a.end(75); !strings.Contains(said, lost) || !strings.HasSuffix(said, want) {
		t.Errorf("it says %s, want %s in it, and %s at the end", said, lost, want)
	}
}

// TestDeathsWhileWaiting: workers that wait for a node die, one of two and then both, and are started again when it comes.
func TestDeathsWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]int{"one": 1, "all": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newReplacingJob(t, "2", "ttl=20,join_timeout=60")
			a, b, before, _ := j.both()
			b.kill()
			a.expect(gone(1, b, "is lost"))
			a.expect("waiting: round 2: 1 of 2 nodes")
			for _, pid := range before[:dead] {
				kill(t, pid)
			}
			awaitGone(t, before[:dead]...) // a death that is noticed in round 2 costs another restart
			if dead == 1 {
				a.expect(`round 1 is over: .*; 0 \(0, exit code -9\): signal 9 \(SIGKILL\)\.$`)
			}
			b = j.start()
			now := a.workers(2, 0, 4)
			if now[0] == before[0] || (now[1] == before[1]) != (dead == 1) {
				t.Errorf("the workers were %v, and are %v", before, now)
			}
			stop(a, b)
		})
	}
}

// TestInterruptWhileReplacing: a signal ends survivors that wait for a node.
func TestInterruptWhileReplacing(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTSTP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			j := newReplacingJob(t, "2", "ttl=20,join_timeout=60")
			a, b, before, _ := j.both()
			b.kill()
			a.expect(gone(1, b, "is lost"))
			a.expect("waiting: round 2: 1 of 2 nodes")
			if sig == syscall.SIGINT {
				a.signal(sig)
				a.end(130)
			} else {
				if isIgnored(t, sig) {
					t.Skip("SIGTSTP is ignored by who started this test, and so it stays")
				}
				a.signal(sig)
				for _, pid := range append(before[:], a.cmd.Process.Pid) {
					awaitSuspended(t, pid, true)
				}
				a.signal(syscall.SIGCONT)
				for _, pid := range before {
					awaitSuspended(t, pid, false)
				}
				b = j.start()
				a.liveOn(before, 2, 0, 4)
				stop(a, b)
			}
			awaitGone(t, before[:]...)
		})
	}
}

// TestNoRestartWhileWaiting: a worker that waits for the next round asks for no restart, and the job ends with its exit code.
func TestNoRestartWhileWaiting(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "2", "ttl=20,join_timeout=60")
	j.args[len(j.args)-1] += " 1"
	a, b, before, _ := j.both()
	b.kill()
	if said := a.end(93); !strings.Contains(said, "rank      : 1 (local_rank: 1)\n  exitcode  : 93 ") {
		t.Errorf("it says %s", said)
	}
	awaitGone(t, before[:]...)
}
