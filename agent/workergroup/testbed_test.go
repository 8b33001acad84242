package workergroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/workergroup"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/rounds"
	"github.com/gorun/gorun/launcher"
)

const patience = 20 * time.Second // when a test gives up

// fakeWorker is a worker that records what is done to it.
type fakeWorker struct {
	spec  launcher.Spec
	pid   int
	exits chan death.Death
	once  sync.Once
	ended chan struct{}

	prefix   string // of its output, the last that SetPrefix has set
	stubborn bool   // it ends only by itself

	mu   sync.Mutex
	said []string
}

func (w *fakeWorker) SetPrefix(_, rank int, prefix string) { w.prefix = fmt.Sprint(rank, prefix) }

func (w *fakeWorker) Pids() []int               { return []int{w.pid} }
func (w *fakeWorker) Exits() <-chan death.Death { return w.exits }
func (w *fakeWorker) Stop(sig syscall.Signal) {
	w.say("stop " + sig.String())
	if w.stubborn {
		return
	}
	w.end(death.Death{ExitCode: -int(sig), Stopped: true})
}
func (w *fakeWorker) Interrupted(d time.Duration) { w.say("grace " + d.String()) }
func (w *fakeWorker) Kill() {
	w.say("kill")
	if w.stubborn {
		return
	}
	w.end(death.Death{ExitCode: -int(syscall.SIGKILL), Stopped: true})
}
func (w *fakeWorker) Signal(sig syscall.Signal) { w.say("signal " + sig.String()) }
func (w *fakeWorker) IsBlocked() bool           { return false }
func (w *fakeWorker) Fail(index int, why string, quit bool) {
	w.say(fmt.Sprintf("fail %d: %s", index, why))
}
func (w *fakeWorker) Suspend()               { w.say("suspend") }
func (w *fakeWorker) Resume(d time.Duration) { w.say("resume " + d.String()) }

func (w *fakeWorker) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

// end ends the worker, unless it has ended.
func (w *fakeWorker) end(x death.Death) {
	w.once.Do(func() {
		x.LocalRank, x.Rank, x.Host = w.spec.FirstLocalRank, w.spec.Workers[0].Rank, w.spec.Host
		w.exits <- x
		close(w.exits)
		close(w.ended)
	})
}

// value is a variable of its environment.
func (w *fakeWorker) value(name string) string {
	for _, kv := range w.spec.Workers[0].Env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// connect takes part.
func (w *fakeWorker) connect(t *testing.T) *rounds.Conn {
	t.Helper()
	c, err := rounds.Connect(t.Context(), w.value("GORUN_ROUND_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// testbed is a group of n fake workers.
type testbed struct {
	*workergroup.Group
	t   *testing.T
	n   int
	dir string

	mu       sync.Mutex
	started  []*fakeWorker
	warnings []string
	broken   int    // the local rank that does not start; negative: none
	starting func() // called when a worker is started; may be nil
}

func newTestbed(t *testing.T, n int) *testbed {
	b := &testbed{t: t, n: n, dir: t.TempDir(), broken: -1}
	b.Group = workergroup.New(workergroup.Config{
		Dir: b.dir, Timeout: patience,
		Start: func(_ context.Context, spec launcher.Spec) (workergroup.WorkerGang, error) {
			if b.starting != nil {
				b.starting()
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if spec.FirstLocalRank == b.broken {
				return nil, errors.New("no such program")
			}
			w := &fakeWorker{spec: spec, pid: os.Getpid(), exits: make(chan death.Death, 1), ended: make(chan struct{})}
			b.started = append(b.started, w)
			return w, nil
		},
		Warn: func(text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.warnings = append(b.warnings, text)
		},
	})
	return b
}

// begin starts a round, and returns the workers that it has started, by local rank.
func (b *testbed) begin(round int) (*workergroup.Gang, []*fakeWorker, error) {
	spec := launcher.Spec{Host: "here", Stdin: os.Stdin}
	for local := range b.n {
		w := env.Worker{Rank: 10 + local, WorldSize: 20, MasterAddr: "h", MasterPort: round, Round: round}
		spec.Workers = append(spec.Workers, launcher.WorkerSpec{Rank: w.Rank, Env: append(w.Environ(), "HOME=/")})
	}
	before := len(b.started)
	gang, err := b.Start(b.t.Context(), spec)
	fresh := make([]*fakeWorker, b.n)
	for _, w := range b.started[before:] {
		fresh[w.spec.FirstLocalRank] = w
	}
	return gang, fresh, err
}

func (b *testbed) mustBegin(round int) (*workergroup.Gang, []*fakeWorker) {
	b.t.Helper()
	gang, fresh, err := b.begin(round)
	if err != nil {
		b.t.Fatal(err)
	}
	return gang, fresh
}

func next(t *testing.T, c *rounds.Conn) rounds.Round {
	t.Helper()
	r, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func await[T any](t *testing.T, c <-chan T) (v T, ok bool) {
	t.Helper()
	select {
	case v, ok = <-c:
		return v, ok
	case <-time.After(patience):
		t.Fatal("it does not happen")
		return v, false
	}
}
