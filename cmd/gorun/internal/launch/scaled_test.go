package launch

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

var died = frame.Outcome{Code: 137, Cause: frame.Died, Text: "gorun has died (signal: killed)"}

// newRunningBed returns a bed whose hosts all have the job.
func newRunningBed(hosts, least int) *bed {
	b := newBed(hosts, least)
	for i := range hosts {
		b.do(at(i))
	}
	return b
}

// TestScaled: gorun scale changes without how many hosts the job can do.
func TestScaled(t *testing.T) {
	const (
		leaves = "drop c, warn host c has left the job "
		goesOn = "; going on with the others"
		stops  = "drop c, signal a 15, signal b 15"
	)
	for name, c := range map[string]struct {
		least  int
		before []event
		last   event // of host c
		want   string
		code   int // if the others then succeed
	}{
		"killed":              {3, []event{scaled{0, 1}}, finished{2, died}, leaves + "with exit code 137" + goesOn, 0},
		"stopped":             {3, []event{scaled{2, 2}}, finished{2, stopped}, leaves + "with exit code 143" + goesOn, 0},
		"drained":             {3, []event{scaled{2, 1}}, finished{2, drained}, leaves + "after gorun drain" + goesOn, 0},
		"lost":                {3, []event{scaled{1, 1}}, lost{2, broken}, "drop c, warn host b: running the job: lost" + goesOn, 0},
		"drained, not scaled": {2, nil, finished{2, drained}, leaves + "after gorun drain" + goesOn, 0},
		"not scaled":          {3, nil, finished{2, died}, stops, 137},
		"scaled up":           {1, []event{scaled{0, 3}}, finished{2, died}, stops, 137},
		"down and up":         {3, []event{scaled{0, 1}, scaled{1, 3}}, finished{2, died}, stops, 137},
		"up and down":         {2, []event{scaled{0, 3}, scaled{1, 2}}, finished{2, died}, leaves + "with exit code 137" + goesOn, 0},
		"more than there are": {1, []event{scaled{0, 8}}, lost{2, broken}, stops, 1},
		"none":                {3, []event{scaled{0, 0}, finished{1, died}}, finished{2, died}, leaves + "with exit code 137" + goesOn, 0},
	} {
		b := newRunningBed(3, c.least)
		for _, e := range c.before {
			b.do(e)
		}
		if got := b.do(c.last); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if strings.Contains(c.want, goesOn) && !b.m.stopAt.IsZero() {
			t.Errorf("%s: the others have only until %v", name, b.m.stopAt)
		}
		b.do(finished{0, succeeded})
		b.do(finished{1, succeeded})
		if got := b.m.result(); !b.over() || got.Code != c.code {
			t.Errorf("%s: over %t, %+v, want code %d", name, b.over(), got, c.code)
		}
	}
}

// TestScaledEtcd: a job that can do without a host by now may have its only etcd there.
func TestScaledEtcd(t *testing.T) {
	const lost = "; the others cannot meet again: the job's etcd is lost"
	b := newRunningBed(3, 3)
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{0, died}, "drop a, warn host a has left the job with exit code 137" + lost},
		turn{finished{2, stopped}, "drop c, warn host c has left the job with exit code 143" + lost}, turn{finished{1, succeeded}, "drop b"})
	b.wantResult(t, Result{})

	b = newRunningBed(3, 3) // gorun hands it over, or waits for the others
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{0, stopped}, "drop a, warn host a has left the job with exit code 143; going on with the others"})
}

// TestLostEtcd: nodes without an etcd do not learn that a worker has failed, or that there are too few of them: the launcher stops them.
func TestLostEtcd(t *testing.T) {
	const leaves = "drop a, warn host a has left the job with exit code 137; the others cannot meet again: the job's etcd is lost"
	b := newRunningBed(3, 3)
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{0, died}, leaves}, turn{finished{2, failed}, "drop c, signal b 15"}, turn{finished{1, stopped}, "drop b"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})

	b = newRunningBed(3, 3)
	b.turns(t, turn{scaled{0, 2}, ""}, turn{finished{0, died}, leaves}, turn{finished{2, drained}, "drop c, signal b 15"}, turn{finished{1, stopped}, "drop b"})
	b.wantResult(t, Result{Code: 137, Text: "host a: gorun has died (signal: killed)"})
}

// TestScaledLate: who has ended, or has not begun, does not say how many hosts the job needs; and what has been decided stays so.
func TestScaledLate(t *testing.T) {
	b := newBed(3, 3)
	b.turns(t, turn{scaled{0, 1}, ""}, turn{at(0), "start a"}, turn{scaled{1, 1}, ""}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{finished{2, succeeded}, "drop c"}, turn{scaled{2, 1}, ""},
		turn{lost{1, broken}, "drop b, signal a 15"}, turn{scaled{0, 1}, ""}, turn{finished{0, succeeded}, "drop a"})
	b.wantResult(t, Result{Code: 1, Text: "host b: running the job: lost"})

	b = newRunningBed(2, 2) // the failure of a worker ends the job nevertheless
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{1, failed}, "drop b"},
		turn{lost{0, broken}, "drop a"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})
}

// TestScaledAfter: the launcher may learn of gorun scale after a host has left because of it. The nodes know when there are enough of them.
func TestScaledAfter(t *testing.T) {
	b := newRunningBed(4, 4)
	b.turns(t, turn{finished{3, stopped}, "drop d"}, turn{finished{2, drained}, "drop c"}, turn{scaled{0, 3}, ""},
		turn{scaled{0, 2}, "warn host d has left the job with exit code 143; going on with the others, warn host c has left the job after gorun drain; going on with the others"},
		turn{scaled{1, 2}, ""}, turn{finished{1, succeeded}, "drop b"})
	if got := b.pass(time.Hour, 0); got != "" {
		t.Errorf("the last host does not go on: %s", got)
	}
	b.turns(t, turn{finished{0, succeeded}, "drop a"})
	b.wantResult(t, Result{})

	b = newRunningBed(3, 3) // the others end with it, and the launcher sees to that
	b.turns(t, turn{finished{2, failed}, "drop c"}, turn{finished{1, stopped}, "drop b"}, turn{scaled{0, 1}, ""})
	if got := b.pass(time.Minute, 0); !strings.HasPrefix(got, "signal a 15") {
		t.Errorf("the last host does not end: %s", got)
	}
}

// TestScaledUpLate: a round goes on though it has fewer nodes than gorun scale allows from now on, and its success is that of the job.
func TestScaledUpLate(t *testing.T) {
	b := newRunningBed(3, 3)
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{2, stopped}, "drop c, warn host c has left the job with exit code 143; going on with the others"},
		turn{scaled{0, 3}, ""}, turn{scaled{1, 3}, ""}, turn{finished{0, succeeded}, "drop a"}, turn{finished{1, succeeded}, "drop b"})
	b.wantResult(t, Result{})

	b = newRunningBed(3, 3) // but it can do without none of them any more
	b.turns(t, turn{scaled{0, 1}, ""}, turn{lost{2, broken}, "drop c, warn host b: running the job: lost; going on with the others"},
		turn{scaled{0, 3}, ""}, turn{lost{1, broken}, "drop b, signal a 15"}, turn{finished{0, stopped}, "drop a"})
	b.wantResult(t, Result{Code: 1, Text: "host b: running the job: lost"})
}

// TestLastHost: also a host that leaves when the others have succeeded is named, and the job has succeeded without it.
func TestLastHost(t *testing.T) {
	for _, c := range []turn{
		{finished{1, died}, "drop b, warn host b has left the job with exit code 137"},
		{finished{1, drained}, "drop b, warn host b has left the job after gorun drain"},
		{lost{1, broken}, "drop b, warn host b: running the job: lost"},
	} {
		b := newRunningBed(2, 1)
		b.turns(t, turn{finished{0, succeeded}, "drop a"}, c)
		b.wantResult(t, Result{})
	}
	b := newRunningBed(2, 1) // nobody has succeeded
	b.turns(t, turn{finished{1, drained}, "drop b, warn host b has left the job after gorun drain; going on with the others"}, turn{finished{0, drained}, "drop a"})
	b.wantResult(t, Result{Code: 143, Text: "host a: stopped by gorun drain (number of other hosts that say the same: 1)"})
}

// TestStopCommand: gorun stop on any host ends the job, also where gorun has not met the others yet. A host that did not learn of it is named,
// and is not why the job ends.
func TestStopCommand(t *testing.T) {
	byStop := stopped
	byStop.ByStop, byStop.Text = true, "stopped by gorun stop"
	unmet := frame.Outcome{Code: 75, Cause: frame.Other, Text: "the job's etcd is lost"}
	for _, least := range []int{1, 3} {
		b := newBed(4, least, func(r *Rules) { r.Meets = false })
		b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"}, turn{finished{1, byStop}, "drop b, signal a 15, signal c 15, drop d"},
			turn{finished{2, unmet}, "drop c"}, turn{finished{0, byStop}, "drop a"})
		b.wantResult(t, Result{Code: 143, Text: "host b: stopped by gorun stop (number of other hosts that say the same: 1)"})
	}
	b := newRunningBed(2, 2)
	b.turns(t, turn{finished{1, byStop}, "drop b, signal a 15"}, turn{lost{0, broken}, "drop a, warn host b: running the job: lost"})
	b.wantResult(t, Result{Code: 143, Text: "host b: stopped by gorun stop"})

	b = newRunningBed(3, 1) // all workers exit 0
	b.turns(t, turn{finished{1, frame.Outcome{ByStop: true}}, "drop b, signal a 15, signal c 15"}, turn{finished{0, succeeded}, "drop a"}, turn{finished{2, succeeded}, "drop c"})
	b.wantResult(t, Result{})

	b = newRunningBed(2, 2) // what was before it is a cause
	b.turns(t, turn{finished{1, unmet}, "drop b, signal a 15"}, turn{finished{0, byStop}, "drop a"})
	b.wantResult(t, Result{Code: 75, Text: "host b: the job's etcd is lost"})
}

// TestSparedHost: why a host has left before is not why the job ends.
func TestSparedHost(t *testing.T) {
	b := newRunningBed(3, 3)
	b.turns(t, turn{scaled{0, 1}, ""}, turn{finished{2, died}, "drop c, warn host c has left the job with exit code 137; going on with the others"})
	b.do(finished{1, stopped})
	b.do(finished{0, stopped})
	b.wantResult(t, Result{Code: 143, Text: "host a: stopped by signal 15 (number of other hosts that say the same: 1)"})
}

// TestScaledProperties: the others go on without a host if, and only if, as many are left as the job needs at that moment. Then it is named, and
// if they succeed so does the job.
func TestScaledProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 5).Draw(t, "hosts")
		least := rapid.IntRange(1, hosts).Draw(t, "least")
		b := newRunningBed(hosts, least)
		alive, useful := hosts, hosts
		for range rapid.IntRange(0, 15).Draw(t, "events") {
			host := rapid.IntRange(0, hosts-1).Draw(t, "host")
			runs := b.m.nodes[host].phase == running
			if rapid.Bool().Draw(t, "scale") {
				needed := rapid.IntRange(0, hosts+2).Draw(t, "needed")
				if did := b.do(scaled{host, needed}); did != "" {
					t.Fatalf("%d are needed: %s", needed, did)
				}
				if runs {
					least = max(1, min(needed, useful))
				}
				continue
			}
			var e event = lost{host, &Failure{b.name(host), "running the job", "lost", codeLost}}
			i := rapid.IntRange(0, 5).Draw(t, "outcome")
			if i < 5 {
				e = finished{host, []frame.Outcome{succeeded, missing, stopped, drained, died}[i]}
			}
			did := b.do(e)
			if !runs || i == 0 {
				if runs {
					alive--
				}
				if strings.Contains(did, "signal") || strings.Contains(did, "warn") {
					t.Fatalf("%+v: %s", e, did)
				}
				continue
			}
			alive--
			useful--
			goesOn := strings.Contains(did, "warn host "+b.name(host)) && !strings.Contains(did, "signal") && b.m.stopAt.IsZero()
			if goesOn != (useful >= least) || goesOn && strings.Contains(did, "; ") != (alive > 0) {
				t.Fatalf("%+v, with %d that are needed, %d left and %d running: %s", e, least, useful, alive, did)
			}
			if !goesOn {
				return
			}
		}
		for i := range hosts {
			b.do(finished{i, succeeded})
		}
		if got := b.m.result(); got != (Result{}) {
			t.Fatalf("result %+v", got)
		}
	})
}
