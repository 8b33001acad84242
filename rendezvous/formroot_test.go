package rendezvous_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// follower is the failure of a worker, the only one of its node, because of another.
func follower(rank, because, finder int) *rendezvous.Failure {
	f := failure(rank, 1)
	f.FailedPeer = &death.Peer{Rank: because, Finder: finder}
	return f
}

func failure(rank, code int) *rendezvous.Failure {
	return &rendezvous.Failure{Death: death.Death{Host: "h", Rank: rank, ExitCode: code}}
}

// TestVictimReportsFirst: a worker that has failed because of another one is not the root cause if the other one's failure is reported
// as well, whatever comes first. It is waited for, as long as its node is here. Node n<i> has rank i-1.
func TestVictimReportsFirst(t *testing.T) {
	crash := follower(0, 2, 0)
	crash.ExitCode = -11
	slow := failure(2, 3) // which had failed by itself, and was still ending when its agent stopped the others on its node
	slow.Stopped = true
	for _, c := range []struct {
		name   string
		first  *rendezvous.Failure // of n1
		others []*rendezvous.Failure
		root   int // index of the root cause: 0 is first, 1 the first of the others
	}{
		{"the cause comes later", follower(0, 2, 0), []*rendezvous.Failure{failure(2, 3)}, 1},
		{"the cause takes long to end", follower(0, 2, 0), []*rendezvous.Failure{slow}, 1},
		{"a chain", follower(0, 1, 0), []*rendezvous.Failure{follower(1, 2, 1), failure(2, 3)}, 2},
		{"each because of the other", follower(0, 1, 0), []*rendezvous.Failure{follower(1, 0, 1)}, 0},
		{"a circle of others", follower(0, 2, 0), []*rendezvous.Failure{follower(1, 2, 1), follower(2, 1, 2)}, 1},
		{"because of itself", follower(0, 0, 0), nil, 0},
		{"no such rank", follower(0, 4, 1<<40), []*rendezvous.Failure{failure(2, 3)}, 0},
		{"a negative rank", follower(0, -1, -1), []*rendezvous.Failure{failure(2, 3)}, 0},
		{"it has not failed, and its finder has", follower(0, 3, 1), []*rendezvous.Failure{follower(1, 3, 1), failure(2, 3)}, 1},
		{"another worker of its node has", follower(0, 2, 0), []*rendezvous.Failure{{Death: death.Death{Host: "h", Rank: 7, ExitCode: 4}}, failure(1, 5)}, 1},
		{"a crash needs no cause", crash, []*rendezvous.Failure{failure(2, 3)}, 0},
		{"an older agent says nothing of it", failure(0, 1), []*rendezvous.Failure{failure(2, 3)}, 0},
	} {
		for _, restarts := range []int{0, 1} {
			all := append([]*rendezvous.Failure{c.first}, c.others...)
			job := started(4, 4, restarts, 4)
			job.report("n1", c.first)
			job.settle(0)
			for _, f := range c.others {
				key := "n3"
				if f.Rank < 4 {
					key = "n" + string(rune('1'+f.Rank))
				}
				job.report(key, f)
			}
			job.settle(0)
			job.settle(5 * time.Second)
			if restarts == 1 {
				job.rejoin()
				job.settle(0)
				job.wantRound(t, 2, "n1 n2 n3 n4", 1, all[c.root].String()+"; restart 1 of 1")
				continue
			}
			if job.closed == nil || job.closed.Failure != all[c.root] || job.closed.Code != all[c.root].Code() {
				t.Errorf("%s: the job is closed: %+v", c.name, job.closed)
			}
		}
	}
}

// TestRootCauseIsAwaited: for how long.
func TestRootCauseIsAwaited(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(*cluster) // after the report of n1 on rank 0, which failed because of rank 2
		after [2]time.Duration
	}{
		{"the node of the other has said nothing", func(*cluster) {}, [2]time.Duration{5 * time.Second, time.Second}},
		{"it has succeeded", func(c *cluster) { c.report("n3", nil) }, [2]time.Duration{time.Second, 0}},
		{"it has failed", func(c *cluster) { c.report("n3", failure(2, 3)) }, [2]time.Duration{time.Second, 0}},
		{"it failed because of one that has said nothing", func(c *cluster) { c.report("n3", follower(2, 3, 2)) }, [2]time.Duration{5 * time.Second, time.Second}},
		{"it asks for no restart", func(c *cluster) {
			f := failure(2, 93)
			f.Final = true
			c.report("n3", f)
		}, [2]time.Duration{}},
		{"another one does", func(c *cluster) {
			f := follower(3, 2, 3)
			f.Final = true
			c.report("n4", f)
		}, [2]time.Duration{time.Second, time.Second}},
	} {
		for restarts, after := range c.after {
			job := started(3, 4, restarts, 4)
			job.report("n1", follower(0, 2, 0))
			c.do(job)
			d := job.settle(0)
			if over := job.s.Over != nil || job.closed != nil; over != (after == 0) || !over && d.After != after {
				t.Errorf("%s, %d restarts: it waits for %+v, want %v", c.name, restarts, d, after)
			}
			job.settle(after)
			if job.closed == nil && job.s.Over == nil {
				t.Errorf("%s, %d restarts: it waits for more", c.name, restarts)
			}
		}
	}
	// The node of the other is lost: that is the cause, and free of charge.
	for restarts := range 2 {
		job := started(3, 4, restarts, 4)
		job.report("n1", follower(0, 2, 0))
		job.settle(0)
		job.settle(time.Second / 2)
		job.die("n3")
		job.settle(0)
		job.rejoin()
		job.settle(0)
		job.wantRound(t, 2, "n1 n2 n4", 0, "n3 is lost")
	}
}

// TestCauseReportedLate: the reason for a round is the root cause even if that was reported when the round before was over already.
func TestCauseReportedLate(t *testing.T) {
	job := started(4, 4, 3, 4)
	job.report("n1", follower(0, 2, 0))
	job.settle(0)
	job.settle(time.Second)
	if job.s.Over == nil || !strings.HasPrefix(job.s.Over.Why, "rank 0 ") {
		t.Fatalf("the round is over: %+v", job.s.Over)
	}
	job.report("n3", failure(2, 3))
	job.rejoin()
	job.settle(0)
	job.wantRound(t, 2, "n1 n2 n3 n4", 1, "rank 2 on h: exit code 3; restart 1 of 3")
}
