package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A script is how one worker of one attempt behaves.
type script struct {
	after time.Duration // it exits by itself; 0: never
	code  int
	obeys int            // exit code in answer to a stop; negative: it ignores stops
	takes time.Duration  // to obey
	says  string         // in its error file, at the end
	early bool           // or rather as soon as it runs
	dies  syscall.Signal // of this, just before a stop reaches it
}

// fakeGang runs scripts on the bubble's clock.
type fakeGang struct {
	exits  chan death.Death
	stop   chan struct{}
	kill   chan struct{}
	host   string
	record func(string)
	size   int
	failed []chan struct{} // by local rank
}

func (g *fakeGang) Exits() <-chan death.Death { return g.exits }
func (g *fakeGang) Stop(sig syscall.Signal, _ ...int) {
	g.record("stop " + sig.String())
	close(g.stop)
}
func (g *fakeGang) Interrupted(d time.Duration) { g.record("grace " + d.String()) }
func (g *fakeGang) Kill(...int)                 { g.record("kill"); close(g.kill) }

// Of gangs whose workers are replaced:
func (g *fakeGang) Ended() <-chan int                                   { return nil }
func (g *fakeGang) Finish()                                             {}
func (g *fakeGang) SetPrefix(int, int, string)                          {}
func (g *fakeGang) Replace(context.Context, launcher.Spec, []int) error { return nil }

func (g *fakeGang) Signal(sig syscall.Signal) { g.record("signal " + sig.String()) }

func (g *fakeGang) Pids() []int     { return make([]int, g.size) }
func (g *fakeGang) IsBlocked() bool { return false }
func (g *fakeGang) Fail(local int, why string, dump syscall.Signal) {
	g.record(fmt.Sprintf("fail %d: %s", local, why))
	close(g.failed[local])
}

func (g *fakeGang) Suspend()               { g.record("suspend") }
func (g *fakeGang) Resume(d time.Duration) { g.record("resume after " + d.String()) }

func (g *fakeGang) worker(w launcher.WorkerSpec, local int, s script, grace time.Duration) {
	x := death.Death{Rank: w.Rank, LocalRank: local, Host: g.host, Pid: 100 + w.Rank, ExitCode: -int(syscall.SIGKILL), Stopped: true}
	if s.early {
		g.say(w, s.says)
		long := time.Unix(1, 0) // the clock of files is not that of the bubble
		g.record(fmt.Sprint("older: ", os.Chtimes(valuesOf(w.Env, "TORCHELASTIC_ERROR_FILE")[0], long, long)))
	}
	var own <-chan time.Time
	if s.after > 0 {
		own = time.After(s.after)
	}
	select {
	case <-own:
		x.ExitCode, x.Stopped = s.code, false
	case <-g.kill:
	case <-g.failed[local]:
		x.Stopped = false
	case <-g.stop:
		if s.dies != 0 {
			x.ExitCode, x.Stopped = -int(s.dies), false
			break
		}
		if s.obeys < 0 || s.takes > grace {
			select {
			case <-time.After(grace):
			case <-g.kill:
			}
			break
		}
		time.Sleep(s.takes)
		x.ExitCode = s.obeys
	}
	x.At = time.Now()
	if !s.early {
		g.say(w, s.says)
	}
	g.exits <- x
}

func (g *fakeGang) say(w launcher.WorkerSpec, text string) {
	if text != "" {
		g.record(fmt.Sprint("error file: ", os.WriteFile(valuesOf(w.Env, "TORCHELASTIC_ERROR_FILE")[0], []byte(text), 0o600)))
	}
}

// A testbed is a job in a bubble: one script list per attempt, and what happened, in order.
type testbed struct {
	t                   *testing.T
	start               time.Time
	attempts            [][]script
	signals, interrupts chan os.Signal
	config              Config

	mu    sync.Mutex
	specs []launcher.Spec
	story []string
}

func newTestbed(t *testing.T, maxRestarts int, attempts ...[]script) *testbed {
	s := &testbed{t: t, start: time.Now(), attempts: attempts,
		signals: make(chan os.Signal), interrupts: make(chan os.Signal)}
	s.config = Config{
		Program: "prog", RunID: "job", MaxRestarts: maxRestarts,
		Node:          rendezvous.Node{ID: "self", Host: "here", Nproc: len(attempts[0]), Role: "default"},
		ReportTimeout: 10 * time.Minute,
		Spec:          launcher.Spec{Argv: []string{"prog"}, Grace: 30 * time.Second},
		Rendezvous:    rendezvous.NewLocal(rendezvous.StaticConfig{Reserve: s.reserve, MaxRestarts: maxRestarts}),
		Start:         s.startGang, Signals: s.signals, Interrupts: s.interrupts,
		Logger: testkit.LogLines(t.Output(), slog.LevelDebug),
	}
	return s
}

func (s *testbed) record(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story = append(s.story, time.Since(s.start).String()+" "+what)
}

type fakePort struct{ s *testbed }

func (fakePort) Number() int    { return 29500 }
func (p fakePort) Close() error { p.s.record("port released"); return nil }

func (s *testbed) reserve(string, int) (rendezvous.Port, error) { return fakePort{s}, nil }

func (s *testbed) startGang(_ context.Context, spec launcher.Spec) (Gang, error) {
	s.record("start")
	s.specs = append(s.specs, spec)
	g := &fakeGang{exits: make(chan death.Death), stop: make(chan struct{}), kill: make(chan struct{}), host: spec.Host, record: s.record}
	g.size = len(s.attempts[len(s.specs)-1])
	for range g.size {
		g.failed = append(g.failed, make(chan struct{}))
	}
	var all sync.WaitGroup
	for i, sc := range s.attempts[len(s.specs)-1] {
		all.Go(func() { g.worker(spec.Workers[i], i, sc, spec.Grace) })
	}
	go func() { all.Wait(); close(g.exits) }()
	return g, nil
}

// after delivers sig to c once d of the job's time has passed.
func after(d time.Duration, c chan<- os.Signal, sig syscall.Signal) {
	time.AfterFunc(d, func() { c <- sig })
}

func (s *testbed) wantStory(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.story, want) {
		s.t.Errorf("story:\n  %s\nwant:\n  %s", strings.Join(s.story, "\n  "), strings.Join(want, "\n  "))
	}
}

// Write puts a line of the log into the story.
func (s *testbed) Write(line []byte) (int, error) {
	s.record(strings.TrimSpace(string(line)))
	return len(line), nil
}
