package launch

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
)

var began = time.Unix(1000, 0)

// bed runs a state machine, and says what it does.
type bed struct {
	m   *stateMachine
	now time.Time
}

func newBed(hosts, least int, change ...func(*Rules)) *bed {
	r := Rules{Least: least, Meets: hosts > 1, Shared: true, Connect: 30 * time.Second, Silence: 20 * time.Second, Grace: 10 * time.Second}
	for i := range hosts {
		r.Hosts = append(r.Hosts, manager.Host{Name: string(rune('a' + i))})
	}
	for _, f := range change {
		f(&r)
	}
	return &bed{newStateMachine(r, began), began}
}

// over reports whether nothing is left to do.
func (b *bed) over() bool { return b.m.count(isAlive) == 0 }

// do takes an event, and returns the actions as text.
func (b *bed) do(e event) string {
	var said []string
	for _, a := range b.m.Step(e, b.now) {
		switch a := a.(type) {
		case start:
			said = append(said, "start "+b.name(a.host))
		case signal:
			said = append(said, fmt.Sprintf("signal %s %d", b.name(a.host), a.sig))
		case kill:
			said = append(said, "kill "+b.name(a.host))
		case drop:
			said = append(said, "drop "+b.name(a.host))
		case warn:
			said = append(said, "warn "+a.text)
		}
	}
	return strings.Join(said, ", ")
}

func (b *bed) name(host int) string { return b.m.rules.Hosts[host].Name }

// elapse goes to the next deadline, which is to be after so long.
func (b *bed) elapse(t *testing.T, after time.Duration) string {
	t.Helper()
	at := b.m.deadline()
	if at.IsZero() || at.Sub(b.now) != after {
		t.Errorf("the next deadline is after %v, want %v", at.Sub(b.now), after)
	}
	b.now = at
	return b.do(elapsed{})
}

// pass lets time pass, in which a host gives signs of life, and returns the actions.
func (b *bed) pass(d time.Duration, host int) string {
	var said []string
	for end := b.now.Add(d); b.now.Before(end); {
		b.do(alive{host})
		b.now = b.now.Add(time.Second)
		if at := b.m.deadline(); !at.IsZero() && !at.After(b.now) {
			if did := b.do(elapsed{}); did != "" {
				said = append(said, did)
			}
		}
	}
	return strings.Join(said, ", ")
}

// A turn is an event with what follows.
type turn struct {
	e    event
	want string
}

func (b *bed) turns(t *testing.T, turns ...turn) {
	t.Helper()
	for i, u := range turns {
		if got := b.do(u.e); got != u.want {
			t.Errorf("turn %d, %+v:\n got %s\nwant %s", i, u.e, got, u.want)
		}
	}
}

// at is a host with an address.
func at(host int) said {
	return said{host, frame.Hello{Addr: fmt.Sprintf("10.0.0.%d", host+1), Port: 20000}}
}

var (
	succeeded = frame.Outcome{}
	failed    = frame.Outcome{Code: 7, Cause: frame.Worker, Text: "summary of the node\n"}
	elsewhere = frame.Outcome{Code: 7, Cause: frame.Elsewhere, Text: "summary of another node\n"}
	missing   = frame.Outcome{Code: 127, Cause: frame.Other, Text: "no such program"}
	stopped   = frame.Outcome{Code: 143, Cause: frame.Stopped, Text: "stopped by signal 15", Signal: 15, Killed: 1}
	drained   = frame.Outcome{Code: 143, Cause: frame.Drained, Text: "stopped by gorun drain", Signal: 15}
	timeUp    = frame.Outcome{Code: 124, Cause: frame.Timeout, Text: "the time was over", Signal: 15}
	closedBy  = frame.Outcome{Code: 143, Cause: frame.Other, Text: "the job is closed: a has left"}
	refused   = &Failure{"b", "connecting", "refused", codeUnreachable}
	broken    = &Failure{"b", "running the job", "lost", codeLost}
)

func (b *bed) wantResult(t *testing.T, want Result) {
	t.Helper()
	if !b.over() {
		t.Error("it is not over")
	}
	if got := b.m.result(); got != want {
		t.Errorf("result %+v, want %+v", got, want)
	}
}

func TestSuccess(t *testing.T) {
	b := newBed(2, 2)
	b.turns(t,
		turn{at(1), ""}, // it is not known where the nodes meet
		turn{at(0), "start a, start b"},
		turn{alive{0}, ""},
		turn{finished{1, succeeded}, "drop b"},
		turn{finished{0, succeeded}, "drop a"},
		turn{lost{0, broken}, ""}, // that is how a connection ends
	)
	b.wantResult(t, Result{})
}

func TestWhereNodesMeet(t *testing.T) {
	b := newBed(4, 4) // none of them may be lost
	b.turns(t, turn{at(3), ""}, turn{at(2), ""}, turn{at(0), "start a, start c, start d"}, turn{at(1), "start b"})
	if !slices.Equal(b.m.endpoints, []int{0}) {
		t.Errorf("endpoints %v", b.m.endpoints)
	}
	b = newBed(4, 3)
	b.turns(t, turn{at(3), ""}, turn{at(2), ""}, turn{at(0), ""}, turn{at(1), "start a, start b, start c, start d"})
	if !slices.Equal(b.m.endpoints, []int{0, 1, 2}) {
		t.Errorf("endpoints %v", b.m.endpoints)
	}
	b = newBed(4, 2) // two hosts may be missing
	b.turns(t, turn{at(2), ""}, turn{at(3), ""},
		turn{lost{1, refused}, "drop b, warn host b: connecting: refused; going on with the others"},
		turn{lost{0, refused}, "drop a, warn host b: connecting: refused; going on with the others, start c, start d"})
	if !slices.Equal(b.m.endpoints, []int{2}) {
		t.Errorf("endpoints %v", b.m.endpoints)
	}
	b = newBed(2, 2) // this machine has to learn how others see it
	b.turns(t, turn{said{0, frame.Hello{}}, ""}, turn{at(1), "start a, start b"})
	b = newBed(2, 2) // all are this machine
	b.turns(t, turn{said{0, frame.Hello{Addr: "127.0.0.1"}}, ""}, turn{said{1, frame.Hello{Addr: "::1"}}, "start a, start b"})
	b = newBed(2, 2, func(r *Rules) { r.Meets = false }) // the user has said where
	b.turns(t, turn{at(1), "start b"}, turn{at(0), "start a"})
	b = newBed(1, 1)
	b.turns(t, turn{at(0), "start a"}, turn{at(0), ""})
}

func TestFailureOfWorker(t *testing.T) {
	b := newBed(3, 3)
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{finished{0, elsewhere}, "drop a"},
		turn{finished{1, failed}, "drop b"},
		turn{finished{2, elsewhere}, "drop c"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})

	b = newBed(3, 3) // one does not end
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{finished{0, elsewhere}, "drop a"}, turn{finished{1, elsewhere}, "drop b"})
	for _, want := range []struct {
		after time.Duration
		says  string
	}{{39 * time.Second, ""}, {time.Second, "signal c 15"}, {19 * time.Second, ""}, {time.Second, "warn host c: the job has not ended there in time: gorun kills it, kill c"},
		{5 * time.Second, "drop c, warn host c: does not answer: look there for what is left of the job"}} {
		if got := b.pass(want.after, 2); got != want.says {
			t.Errorf("got %q, want %q", got, want.says)
		}
	}
	b.wantResult(t, Result{Code: 7, Summary: "summary of another node\n"})
}

// TestTimeout: the nodes of a job have the same --timeout, and the first one whose time is over takes its workers from the others.
func TestTimeout(t *testing.T) {
	want := Result{Code: 124, Text: "host c: the time was over"}
	for _, first := range []frame.Outcome{closedBy, failed, elsewhere, stopped} {
		b := newBed(3, 3)
		b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"})
		b.do(finished{0, first})
		b.turns(t, turn{finished{2, timeUp}, "drop c"}, turn{finished{1, stopped}, "drop b"})
		b.wantResult(t, want)
	}

	b := newBed(3, 1) // the time of the whole job is over
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"},
		turn{finished{2, timeUp}, "drop c"}, turn{lost{1, broken}, "drop b, warn host b: running the job: lost"}, turn{finished{0, timeUp}, "drop a"})
	b.wantResult(t, Result{Code: 124, Text: "host c: the time was over (number of other hosts that say the same: 1)"})
}

func TestFailureOfNode(t *testing.T) {
	b := newBed(3, 3)
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{finished{0, missing}, "drop a, signal b 15, signal c 15"},
		turn{finished{1, missing}, "drop b"},
		turn{finished{2, stopped}, "drop c"})
	b.wantResult(t, Result{Code: 127, Text: "host a: no such program (number of other hosts that say the same: 1)"})

	b = newBed(2, 2) // the first one that has died or fails by itself says why
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{finished{1, missing}, "drop b, signal a 15"}, turn{finished{0, died}, "drop a"})
	b.wantResult(t, Result{Code: 127, Text: "host b: no such program"})

	b = newBed(2, 2, func(r *Rules) { r.Shared = false }) // the other node does not learn of it
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"},
		turn{finished{1, failed}, "drop b, signal a 15"}, turn{finished{0, stopped}, "drop a"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})
}

func TestLostHost(t *testing.T) {
	b := newBed(3, 3)
	b.turns(t, turn{at(2), ""}, turn{lost{1, refused}, "drop b, drop a, drop c"}, turn{at(0), ""})
	b.wantResult(t, Result{Code: 75, Text: "host b: connecting: refused"})

	b = newBed(3, 3)
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{lost{1, broken}, "drop b, signal a 15, signal c 15"},
		turn{lost{1, refused}, ""},
		turn{finished{0, stopped}, "drop a"}, turn{finished{2, stopped}, "drop c"})
	b.wantResult(t, Result{Code: 1, Text: "host b: running the job: lost"})

	b = newBed(3, 2) // it is not needed
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"},
		turn{lost{1, broken}, "drop b, warn host b: running the job: lost; going on with the others"},
		turn{finished{0, succeeded}, "drop a"}, turn{finished{2, succeeded}, "drop c"})
	b.wantResult(t, Result{})

	b = newBed(3, 2) // another one is
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"},
		turn{finished{2, stopped}, "drop c, warn host c has left the job with exit code 143; going on with the others"},
		turn{lost{1, broken}, "drop b, signal a 15"}, turn{finished{0, stopped}, "drop a"})
	b.wantResult(t, Result{Code: 1, Text: "host b: running the job: lost"})

	b = newBed(3, 2) // the failure of a worker ends the job on all hosts
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"},
		turn{finished{2, failed}, "drop c"}, turn{finished{0, elsewhere}, "drop a"}, turn{finished{1, elsewhere}, "drop b"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})

	b = newBed(3, 1) // and the loss of another one changes nothing
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"},
		turn{finished{2, failed}, "drop c"}, turn{lost{1, broken}, "drop b, warn host b: running the job: lost"}, turn{finished{0, elsewhere}, "drop a"})
	b.wantResult(t, Result{Code: 7, Summary: "summary of the node\n"})

	b = newBed(2, 1) // the others run on, but have nowhere to meet
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"},
		turn{lost{0, &Failure{"a", "running the job", "lost", codeLost}}, "drop a, warn host a: running the job: lost; the others cannot meet again: the job's etcd is lost"},
		turn{finished{1, succeeded}, "drop b"})
	b.wantResult(t, Result{})

	b = newBed(4, 1) // two of three members of the etcd
	b.turns(t, turn{at(0), ""}, turn{at(1), ""}, turn{at(2), "start a, start b, start c"}, turn{at(3), "start d"},
		turn{lost{3, broken}, "drop d, warn host b: running the job: lost; going on with the others"},
		turn{lost{1, broken}, "drop b, warn host b: running the job: lost; going on with the others"},
		turn{lost{2, broken}, "drop c, warn host b: running the job: lost; the others cannot meet again: the job's etcd is lost"})
}

func TestSilence(t *testing.T) {
	b := newBed(2, 2)
	b.turns(t, turn{at(0), "start a"})
	if got := b.elapse(t, 20*time.Second); got != "drop a, drop b" {
		t.Errorf("a host that gives no sign of life: %s", got)
	}
	b.wantResult(t, Result{Code: 1, Text: "host a: running the job: the host is lost: no sign of life for 20s"})

	b = newBed(2, 2)
	b.turns(t, turn{at(1), ""})
	if got := b.elapse(t, 30*time.Second); got != "drop a, drop b" {
		t.Errorf("a host that does not answer: %s", got)
	}
	if got := b.m.result(); got.Code != 75 || !strings.HasPrefix(got.Text, "host a: connecting: no answer within 30s: ") {
		t.Errorf("%+v", got)
	}

	b = newBed(2, 2)
	b.turns(t, turn{copying{0, true}, ""})
	b.now = b.now.Add(20 * time.Second)
	b.turns(t, turn{alive{0}, ""}, turn{at(1), ""})
	if got := b.elapse(t, 30*time.Second); got != "drop a, drop b" {
		t.Errorf("a copy that stalls: %s", got)
	}
	b.wantResult(t, Result{Code: 75, Text: "host a: copying gorun: no progress within 30s: check the network, or give it longer with --connect-timeout"})

	b = newBed(2, 2) // it has been copied
	b.turns(t, turn{copying{0, true}, ""}, turn{copying{0, false}, ""}, turn{at(1), ""})
	b.elapse(t, 30*time.Second)
	if got := b.m.result(); !strings.HasPrefix(got.Text, "host a: connecting: no answer within 30s: ") {
		t.Errorf("%+v", got)
	}
}

func TestInterrupt(t *testing.T) {
	b := newBed(3, 3)
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{at(2), "start c"},
		turn{signalled{10}, "signal a 10, signal b 10, signal c 10"},
		turn{interrupted{2}, "signal a 2, signal b 2, signal c 2"},
		turn{finished{0, stopped}, "drop a"},
		turn{interrupted{2}, "signal b 2, signal c 2"},
		turn{finished{1, stopped}, "drop b"},
		turn{interrupted{2}, "kill c"})
	if got := b.elapse(t, 5*time.Second); !strings.HasPrefix(got, "drop c, warn host c: does not answer") {
		t.Errorf("got %q", got)
	}
	b.wantResult(t, Result{Code: 130, Signal: 2, Killed: 2})

	b = newBed(2, 2) // all workers then exit 0
	b.turns(t, turn{at(0), "start a"}, turn{at(1), "start b"}, turn{interrupted{syscall.SIGPIPE}, "signal a 15, signal b 15"},
		turn{finished{0, succeeded}, "drop a"}, turn{finished{1, succeeded}, "drop b"})
	b.wantResult(t, Result{})

	b = newBed(2, 2) // while it connects
	b.turns(t, turn{at(0), "start a"}, turn{interrupted{15}, "signal a 15, drop b"}, turn{finished{0, stopped}, "drop a"})
	b.wantResult(t, Result{Code: 143, Signal: 15, Killed: 1})
}

// TestProperties: whatever happens, and in whatever order, a host gets its job at most once, nothing is sent to a host without a job,
// and the job comes to an end.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 5).Draw(t, "hosts")
		b := newBed(hosts, rapid.IntRange(1, hosts).Draw(t, "least"), func(r *Rules) { r.Shared = rapid.Bool().Draw(t, "shared") })
		runs, dropped := make([]bool, hosts), make([]bool, hosts)
		act := func(e event) {
			for _, a := range b.m.Step(e, b.now) {
				switch a := a.(type) {
				case start:
					if runs[a.host] || dropped[a.host] {
						t.Fatalf("%s is started twice, or after its end", b.name(a.host))
					}
					runs[a.host] = true
				case signal:
					if !runs[a.host] || dropped[a.host] {
						t.Fatalf("a signal for %s, which has no job", b.name(a.host))
					}
				case kill:
					if !runs[a.host] || dropped[a.host] {
						t.Fatalf("kill for %s, which has no job", b.name(a.host))
					}
				case drop:
					if dropped[a.host] {
						t.Fatalf("%s is dropped twice", b.name(a.host))
					}
					dropped[a.host] = true
				}
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			host := rapid.IntRange(0, hosts-1).Draw(t, "host")
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				act(at(host))
			case 1:
				act(alive{host})
			case 2:
				act(finished{host, rapid.SampledFrom([]frame.Outcome{succeeded, failed, elsewhere, missing, stopped, drained, died, timeUp}).Draw(t, "outcome")})
			case 3:
				act(lost{host, broken})
			case 4:
				act(interrupted{2})
			case 5:
				act(signalled{10})
			case 6:
				act(scaled{host, rapid.IntRange(1, hosts+2).Draw(t, "needed")})
			default:
				if at := b.m.deadline(); !at.IsZero() {
					b.now = at
					act(elapsed{})
				}
			}
		}
		for turns := 0; !b.over(); turns++ { // nothing more comes from anybody
			at := b.m.deadline()
			if at.IsZero() || turns > 100 {
				t.Fatalf("the job does not end: %+v", b.m)
			}
			b.now = at
			act(elapsed{})
		}
		ok := b.m.result()
		if ok.Code == 0 && (ok.Text+ok.Summary != "" || !b.m.enoughSucceeded()) || ok.Code != 0 && ok.Text+ok.Summary == "" && ok.Signal == 0 {
			t.Fatalf("result %+v", ok)
		}
		if slices.Contains(dropped, false) {
			t.Fatalf("dropped %v", dropped)
		}
	})
}
