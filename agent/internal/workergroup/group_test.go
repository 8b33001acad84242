package workergroup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
)

// TestReplace: of three workers one dies, one takes part and one does not.
func TestReplace(t *testing.T) {
	b := newTestbed(t, 3)
	gang, first := b.mustBegin(1)
	for local, w := range first {
		if w.value("RANK") != fmt.Sprint(10+local) || w.value("HOME") != "/" {
			t.Errorf("worker %d: %+v", local, w.spec)
		}
	}
	conn := first[0].connect(t)
	first[1].end(death.Death{Pid: 7, ExitCode: -int(syscall.SIGKILL), OutOfMemory: true, Stderr: []string{"boom"}})
	want := death.Death{Rank: 11, LocalRank: 1, Host: "here", Pid: 7, ExitCode: -9, OutOfMemory: true, Stderr: []string{"boom"}}
	over := next(t, conn)
	if over.Round != 1 || !over.Over || fmt.Sprint(over.Died) != fmt.Sprint([]death.Death{want}) {
		t.Errorf("told of %+v", over)
	}
	if x, _ := await(t, gang.Exits()); x.LocalRank != 1 || x.Rank != 11 {
		t.Errorf("exit %+v", x)
	}
	far := death.Death{Rank: 3, Host: "there", ExitCode: 1}
	gang.Revoke(syscall.SIGTERM, "", []death.Death{far})
	if over = next(t, conn); len(over.Died) != 2 || over.Died[1].Rank != 3 {
		t.Errorf("told of %+v", over)
	}
	await(t, gang.Revoked())
	gang.Notify([]death.Death{far, {Rank: 4, Host: "there", Cause: death.Unknown, Why: "its node is lost"}})
	if over = next(t, conn); len(over.Died) != 3 || over.Died[2].Rank != 4 {
		t.Errorf("told of %+v", over)
	}
	gang.Notify([]death.Death{far}) // the worker knows of it, and gets no document
	if x, _ := await(t, gang.Exits()); x.LocalRank != 2 || !x.Stopped {
		t.Errorf("exit %+v", x)
	}
	gang, second := b.mustBegin(2)
	if second[0] != nil || second[1] == nil || second[2] == nil {
		t.Fatalf("%v were started", second)
	}
	if first[0].prefix != "10" {
		t.Errorf("the prefix of a worker that lives on is for rank %s", first[0].prefix)
	}
	r := next(t, conn)
	w, err := r.Worker()
	if err != nil || r.Round != 2 || r.Over || w.Rank != 10 || w.MasterPort != 2 || w.RoundSocket != first[0].value("GORUN_ROUND_SOCKET") || len(r.Died) != 3 {
		t.Errorf("told of %+v: %+v, %v", r, w, err)
	}
	if err := conn.Enter(2); err != nil {
		t.Fatal(err)
	}
	gang.Stop(syscall.SIGINT)
	if want := []string{"stop interrupt"}; !slices.Equal(first[0].said, want) || !slices.Equal(second[1].said, want) {
		t.Errorf("%q, %q, want %q", first[0].said, second[1].said, want)
	}
	n := 0
	for range gang.Exits() {
		n++
	}
	if left, _ := filepath.Glob(b.dir + "/*"); n != 3 || len(left) > 0 || len(b.warnings) > 0 {
		t.Errorf("%d exits; left: %q; warnings %q", n, left, b.warnings)
	}
	if _, err := conn.Next(); err == nil {
		t.Errorf("the connection of a worker that has ended: %v", err)
	}
}

// TestDeathsBetweenRounds: a worker that dies when its round is over is started again, and the others learn of its death. A worker that dies
// after it has got the next round is a failure of that round.
func TestDeathsBetweenRounds(t *testing.T) {
	b := newTestbed(t, 3)
	gang, first := b.mustBegin(1)
	var conns []*env.Conn
	for _, w := range first {
		conns = append(conns, w.connect(t))
	}
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	for _, c := range conns {
		if r := next(t, c); !r.Over || len(r.Died) > 0 {
			t.Errorf("told of %+v", r)
		}
	}
	first[1].end(death.Death{ExitCode: 5})
	if r := next(t, conns[0]); !r.Over || len(r.Died) != 1 || r.Died[0].Rank != 11 || r.Died[0].ExitCode != 5 {
		t.Errorf("told of %+v", r)
	}
	gang, second := b.mustBegin(2)
	if second[0] != nil || second[1] == nil || second[2] != nil {
		t.Fatalf("%v were started", second)
	}
	if r := next(t, conns[0]); r.Round != 2 || len(r.Died) != 1 {
		t.Errorf("told of %+v", r)
	}
	first[2].end(death.Death{ExitCode: 6})
	if x, _ := await(t, gang.Exits()); x.Rank != 12 || x.Code() != 6 {
		t.Errorf("exit %+v", x)
	}
	if r := next(t, conns[0]); !r.Over || r.Round != 2 || len(r.Died) != 1 || r.Died[0].Rank != 12 {
		t.Errorf("told of %+v", r)
	}
	if r := next(t, second[1].connect(t)); !r.Over || r.Round != 2 || len(r.Died) != 1 || r.Died[0].Rank != 12 { // though it connects late
		t.Errorf("told of %+v", r)
	}
	gang.Kill()
	for range gang.Exits() {
	}
}

// TestDeathWhileReplaced: a worker that is replaced, because it has gone silent, dies before the one in its place
// runs. That is no failure of the next round.
func TestDeathWhileReplaced(t *testing.T) {
	b := newTestbed(t, 2)
	gang, first := b.mustBegin(1)
	lives, dies := first[0].connect(t), first[1].connect(t)
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	next(t, lives)
	next(t, dies)
	first[1].stubborn = true
	b.do(func() { b.group.Fail(1, "it is silent", time.Now()) })
	next(t, lives)
	go func() {
		for !first[1].has("stop terminated") {
			runtime.Gosched()
		}
		first[1].end(death.Death{ExitCode: -int(syscall.SIGKILL)})
	}()
	gang, second := b.mustBegin(2)
	if second[0] != nil || second[1] == nil {
		t.Fatalf("%v were started", second)
	}
	if r := next(t, lives); r.Round != 2 || r.Over {
		t.Errorf("told of %+v", r)
	}
	gang.Revoke(syscall.SIGTERM, "the end of the test", nil)
	if r := next(t, lives); r.Round != 2 || r.Why != "the end of the test" || len(r.Died) > 0 {
		t.Errorf("told of %+v, want nothing before", r)
	}
	gang.Kill()
	for range gang.Exits() {
	}
}

// TestBadAnswers: a worker that answers wrongly, or not at all, is killed, and its exit says what it did wrong.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int
		want    string
	}{
		"twice":     {[]int{2, 2}, "rank 10 (local rank 0) is killed: it enters round 2, and has nothing to enter: it is in round 2"},
		"old":       {[]int{1}, "rank 10 (local rank 0) is killed: it enters round 1, and is in round 2"},
		"too early": {[]int{3}, "rank 10 (local rank 0) is killed: it enters round 3, and is in round 2"},
		"none":      {nil, "rank 10 (local rank 0) is killed: it did not enter round 2 within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 1)
			if c.answers == nil {
				b.limit = 100 * time.Millisecond
			}
			gang, first := b.mustBegin(1)
			conn := first[0].connect(t)
			gang.Revoke(syscall.SIGTERM, "", nil)
			gang, _ = b.mustBegin(2)
			next(t, conn)
			for _, round := range c.answers {
				if err := conn.Enter(round); err != nil {
					t.Fatal(err)
				}
			}
			if x, _ := await(t, gang.Exits()); x.Stopped || x.Signal() != syscall.SIGKILL || c.want != "rank 10 (local rank 0) is killed: it "+x.Why || !strings.HasSuffix(x.String(), x.Why) {
				t.Errorf("exit %+v", x)
			}
			if !slices.Equal(b.warnings, []string{c.want}) {
				t.Errorf("warnings %q, want %q", b.warnings, c.want)
			}
		})
	}
}

// TestStartFails: a round cannot be started. Its survivors live on, and can be stopped.
func TestStartFails(t *testing.T) {
	b := newTestbed(t, 3)
	gang, first := b.mustBegin(1)
	first[0].connect(t)
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	b.broken = 2
	if _, _, err := b.begin(2); err == nil || err.Error() != "no such program" {
		t.Errorf("started: %v", err)
	}
	gang.Stop(syscall.SIGTERM)
	for range gang.Exits() {
	}
	if left, _ := filepath.Glob(b.dir + "/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestFail: a worker that hangs is killed with all processes that it has started, although it takes part. The others learn why.
func TestFail(t *testing.T) {
	b := newTestbed(t, 2)
	gang, first := b.mustBegin(1)
	other := first[0].connect(t)
	first[1].connect(t)
	first[1].stubborn = true
	gang.Fail(1, "it hangs")
	gang.Revoke(syscall.SIGTERM, "", nil)
	select {
	case <-gang.Revoked():
		t.Error("revoked, and it has not ended")
	default:
	}
	first[1].end(death.Death{ExitCode: -int(syscall.SIGKILL), Cause: death.Hang, Why: "it hangs", Stopped: true})
	await(t, gang.Revoked())
	if x, _ := await(t, gang.Exits()); x.Cause != death.Hang || x.Why != "it hangs" || x.Stopped || x.LocalRank != 1 {
		t.Errorf("exit %+v", x)
	}
	if over := next(t, other); len(over.Died) != 1 || over.Died[0].Cause != death.Hang || over.Died[0].String() != "signal 9 (SIGKILL): it hangs" || over.Died[0].Pid != os.Getpid() {
		t.Errorf("told first of %+v", over)
	}
	if !slices.Equal(first[1].said, []string{"fail: it hangs"}) {
		t.Errorf("the one that hangs: %q", first[1].said)
	}
	_, second := b.mustBegin(2)
	if second[0] != nil || second[1] == nil {
		t.Errorf("started %v", second)
	}
}

// TestExitOfNobody: the exit of a worker whose start has failed is nobody's, and counts for no other worker.
func TestExitOfNobody(t *testing.T) {
	b := newTestbed(t, 1)
	g := workergroup.New(workergroup.Config{})
	spec := launcher.Spec{Workers: []launcher.WorkerSpec{{Env: (&env.Worker{Round: 1, WorldSize: 1}).Environ()}}}
	if _, err := g.Begin(spec, time.Now()); err != nil {
		t.Fatal(err)
	}
	g.Entered(b, []int{7})
	for _, pid := range []int{7, 8} {
		g.Exited(death.Death{Pid: pid, ExitCode: 1}, time.Now())
	}
	if events := g.Take(); len(events) != 1 || events[0].Exit == nil || events[0].Exit.Pid != 7 {
		t.Errorf("%+v, want one exit", events)
	}
}
