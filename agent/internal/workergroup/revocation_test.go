package workergroup_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// TestRevocation: a worker revokes its round, as often as it likes, and is in the next one with those that have learned why.
func TestRevocation(t *testing.T) {
	b := newTestbed(t, 2)
	gang, first := b.mustBegin(1)
	conn, other := first[0].connect(t), first[1].connect(t)
	for _, why := range []string{"rank 3\nhas left", "rank 4 has left"} {
		if err := conn.Revoke(1, why); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := await(t, gang.Revocations())
	if x.Rank != 10 || x.Pid == 0 || x.At.IsZero() || !x.Failed() || x.String() != "revoked its round: rank 3 has left" {
		t.Errorf("the failure is %+v: %s", x, x)
	}
	gang.Revoke(syscall.SIGTERM, x.String(), nil)
	await(t, gang.Revoked())
	for range 2 {
		if r := next(t, other); !r.Over || r.Why != x.String() || len(r.Died) > 0 {
			t.Errorf("told of %+v", r)
		}
		other = conn
	}
	gang, second := b.mustBegin(2)
	if second[0] != nil || second[1] != nil {
		t.Errorf("%v were started", second)
	}
	for i, why := range []string{"too late", strings.Repeat("x", 5000)} {
		if err := conn.Revoke(1+i, why); err != nil {
			t.Fatal(err)
		}
	}
	if x, _ := await(t, gang.Revocations()); x.Why == "too late" || len(x.Why) > 1100 {
		t.Errorf("a reason of %d bytes: %.10s", len(x.Why), x.Why)
	}
	if len(gang.Revocations()) > 0 {
		t.Error("the end of a round counts for the next one, or counts twice")
	}
	if err := conn.Revoke(3, "it knows the future"); err != nil {
		t.Fatal(err)
	}
	if x, _ := await(t, gang.Exits()); x.LocalRank != 0 || x.Why != "revokes round 3, and is in round 2" {
		t.Errorf("exit %+v", x)
	}
	gang.Kill()
	for range gang.Exits() {
	}
}

// TestRevocationWhileOthersAreStarted: a worker is faster than the start of another one.
func TestRevocationWhileOthersAreStarted(t *testing.T) {
	b := newTestbed(t, 2)
	gang, first := b.mustBegin(1)
	conn := first[0].connect(t)
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	taken := make(chan struct{})
	b.starting = func() { // round 2 has begun for the survivor
		if err := conn.Revoke(2, "it is fast"); err != nil {
			t.Error(err)
		}
		if err := conn.Enter(7); err != nil { // the agent reads it after that
			t.Error(err)
		}
		await(t, first[0].ended)
		close(taken)
	}
	gang, _ = b.mustBegin(2)
	await(t, taken)
	if x, _ := await(t, gang.Revocations()); x.Rank != 10 || x.Why != "it is fast" {
		t.Errorf("the failure is %+v", x)
	}
	gang.Kill()
	for range gang.Exits() {
	}
}

// TestMissing: a worker revokes a round because ranks have not come. One that has not entered it is killed instead, unless it has lived on
// for longer: then it has more in memory.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		old, entered bool // the worker that revokes has lived on, too; the missing one has entered the round
		missing      []int
		want         string // how the missing one ends; empty: it lives on
	}{
		"missing":   {old: true, missing: []int{3, 11}, want: "signal 9 (SIGKILL): it has not entered round 2, and rank 10 has given it up"},
		"no rank":   {old: true},
		"far ranks": {old: true, missing: []int{3, 9}},
		"entered":   {old: true, entered: true, missing: []int{11}},
		"is new":    {missing: []int{11}},
		"is late":   {old: true, missing: []int{10, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 2)
			gang, first := b.mustBegin(1)
			missing := first[1].connect(t)
			var conn *env.Conn
			if c.old {
				conn = first[0].connect(t)
			}
			gang.Revoke(syscall.SIGTERM, "", nil)
			await(t, gang.Revoked())
			gang, second := b.mustBegin(2)
			if c.entered {
				if err := errors.Join(missing.Enter(2), missing.Revoke(2, "it has entered")); err != nil {
					t.Fatal(err)
				}
				await(t, gang.Revocations())
			}
			if !c.old {
				conn = second[0].connect(t)
			} else if name != "is late" {
				if err := conn.Enter(2); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.Revoke(2, "ranks are missing", c.missing...); err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				if x, _ := await(t, gang.Exits()); x.Rank != 11 || x.String() != c.want || x.Stopped {
					t.Errorf("exit %v, want %s", x, c.want)
				}
			} else if x, _ := await(t, gang.Revocations()); x.Rank != 10 {
				t.Errorf("the failure is %+v", x)
			}
			if len(gang.Exits()) > 0 || len(gang.Revocations()) > 0 {
				t.Errorf("%d exits and %d revocations too many", len(gang.Exits()), len(gang.Revocations()))
			}
			gang.Kill()
			for range gang.Exits() {
			}
		})
	}
}

// TestCannotEnter: a worker that disconnects from its agent before it has entered a round is killed soon. If it has ended, its exit says
// how, and exit code 0 is a failure as well: the others wait for it.
func TestCannotEnter(t *testing.T) {
	for name, c := range map[string]struct {
		ends death.Death
		want string
	}{
		"lives":      {want: "signal 9 (SIGKILL): it disconnected from its agent, and has not entered round 2"},
		"has failed": {ends: death.Death{ExitCode: 3, At: time.Now()}, want: "exit code 3"},
		"has exited": {ends: death.Death{At: time.Now()}, want: "ended with exit code 0 before it had entered round 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, 1)
			b.limit = time.Hour
			gang, first := b.mustBegin(1)
			conn := first[0].connect(t)
			gang.Revoke(syscall.SIGTERM, "", nil)
			await(t, gang.Revoked())
			gang, second := b.mustBegin(2)
			if second[0] != nil {
				t.Fatal("it does not live on")
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if !c.ends.At.IsZero() {
				first[0].end(c.ends)
			}
			if x, _ := await(t, gang.Exits()); x.String() != c.want || !x.Failed() || x.Stopped {
				t.Errorf("exit %v, want %s", x, c.want)
			}
		})
	}
}

// TestEntersAndEnds: workers enter a round, do nothing there, and end with exit code 0. Nobody waits for them.
func TestEntersAndEnds(t *testing.T) {
	const workers = 50
	b := newTestbed(t, workers)
	gang, first := b.mustBegin(1)
	conns := make([]*env.Conn, workers)
	for i, w := range first {
		conns[i] = w.connect(t)
	}
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	gang, _ = b.mustBegin(2)
	for i, w := range first {
		go func() {
			if err := errors.Join(conns[i].Enter(2), conns[i].Close()); err != nil {
				t.Error(err)
			}
			w.end(death.Death{At: time.Now()})
		}()
	}
	for range workers {
		if x, _ := await(t, gang.Exits()); x.Failed() {
			t.Errorf("exit %v", x)
		}
	}
}
