package workergroup_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
)

const patience = 20 * time.Second // when a test gives up

// fakeWorker is a worker that records what is done to it.
type fakeWorker struct {
	spec  launcher.WorkerSpec
	local int
	pid   int
	bed   *testbed
	once  sync.Once
	ended chan struct{}

	prefix   string // of its output, the last that SetPrefix has set
	stubborn bool   // it ends only by itself

	mu   sync.Mutex
	said []string
}

func (w *fakeWorker) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

// has reports whether something has been done to it.
func (w *fakeWorker) has(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.said, what)
}

// end ends the worker, unless it has ended.
func (w *fakeWorker) end(x death.Death) {
	w.once.Do(func() {
		x.LocalRank, x.Rank, x.Host, x.Pid = w.local, w.spec.Rank, "here", w.pid
		w.bed.exits <- x
		close(w.ended)
	})
}

// value is a variable of its environment.
func (w *fakeWorker) value(name string) string {
	for _, kv := range w.spec.Env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// connect takes part.
func (w *fakeWorker) connect(t *testing.T) *env.Conn {
	t.Helper()
	c, err := env.Connect(t.Context(), w.value("GORUN_ROUND_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// testbed is a group of n fake workers, with a loop that owns it, as an agent has one. It is also the processes of
// the workers.
type testbed struct {
	group *workergroup.Group
	dir   string
	limit time.Duration // Config.Timeout
	t     *testing.T
	n     int
	calls chan func()      // into the loop
	exits chan death.Death // of workers
	slots []*fakeWorker    // by local rank: the last that was started
	gang  *gang            // of the last round that has begun
	quit  chan struct{}

	mu       sync.Mutex
	warnings []string
	broken   int    // the local rank that does not start; negative: none
	starting func() // called when a worker is started; may be nil
}

func newTestbed(t *testing.T, n int) *testbed {
	return &testbed{t: t, n: n, dir: t.TempDir(), limit: patience, broken: -1, calls: make(chan func()), exits: make(chan death.Death, 2*n),
		slots: make([]*fakeWorker, n), quit: make(chan struct{})}
}

// run is the loop.
func (b *testbed) run() {
	for {
		for _, e := range b.group.Take() {
			b.gang.take(e)
		}
		var late <-chan time.Time
		if at := b.group.Deadline(); !at.IsZero() {
			late = time.After(time.Until(at))
		}
		select {
		case call := <-b.calls:
			call()
		case x := <-b.exits:
			b.group.Exited(x, time.Now())
			b.group.Ended(x.LocalRank)
		case m := <-b.group.Messages():
			b.group.Handle(m, time.Now())
		case <-late:
			b.group.Check(time.Now())
		case <-b.quit:
			return
		}
	}
}

// do calls f in the loop, and waits for it.
func (b *testbed) do(f func()) {
	done := make(chan struct{})
	b.calls <- func() { defer close(done); f() }
	<-done
}

// begin starts a round, and returns the workers that it has started, by local rank.
func (b *testbed) begin(round int) (*gang, []*fakeWorker, error) {
	if b.group == nil {
		b.group = workergroup.New(workergroup.Config{Dir: b.dir, Timeout: b.limit, Warn: func(text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.warnings = append(b.warnings, text)
		}})
		go b.run()
		b.t.Cleanup(func() { close(b.quit) })
	}
	spec := launcher.Spec{Host: "here", Stdin: os.Stdin}
	for local := range b.n {
		w := env.Worker{Rank: 10 + local, WorldSize: 20, MasterAddr: "h", MasterPort: round, Round: round}
		spec.Workers = append(spec.Workers, launcher.WorkerSpec{Rank: w.Rank, Env: append(w.Environ(), "HOME=/")})
	}
	var start *workergroup.Start
	var err error
	b.do(func() { start, err = b.group.Begin(spec, time.Now()) })
	if err == nil {
		err = start.Listen()
	}
	fresh := make([]*fakeWorker, b.n)
	if err == nil {
		err = b.startProcesses(start, fresh)
	}
	if err != nil {
		b.do(b.group.NotEntered)
		return nil, nil, err
	}
	pids := slices.Repeat([]int{os.Getpid()}, b.n)
	start.Started(pids)
	g := &gang{b, make(chan death.Death, 2*b.n), make(chan death.Death, b.n), make(chan struct{})}
	b.do(func() { b.gang = g; b.group.Entered(b, pids) })
	return g, fresh, nil
}

func (b *testbed) startProcesses(start *workergroup.Start, fresh []*fakeWorker) error {
	if slices.Contains(start.Missing, b.broken) {
		return errors.New("no such program")
	}
	for _, local := range start.Missing {
		if old := b.slots[local]; old != nil {
			<-old.ended
		}
		fresh[local] = &fakeWorker{spec: start.Spec.Workers[local], local: local, pid: os.Getpid(), bed: b, ended: make(chan struct{})}
		b.slots[local] = fresh[local]
		if b.starting != nil {
			b.starting()
		}
	}
	return nil
}

func (b *testbed) mustBegin(round int) (*gang, []*fakeWorker) {
	b.t.Helper()
	gang, fresh, err := b.begin(round)
	if err != nil {
		b.t.Fatal(err)
	}
	return gang, fresh
}

// SetPrefix, Stop, Kill and Fail make it a workergroup.Gang.
func (b *testbed) SetPrefix(local, rank int, prefix string) {
	b.slots[local].prefix = fmt.Sprint(rank, prefix)
}

func (b *testbed) Stop(sig syscall.Signal, locals ...int) {
	for _, local := range locals {
		b.slots[local].say("stop " + sig.String())
		b.endSlot(local, -int(sig))
	}
}

func (b *testbed) Kill(locals ...int) {
	for _, local := range locals {
		b.slots[local].say("kill")
		b.endSlot(local, -int(syscall.SIGKILL))
	}
}

func (b *testbed) endSlot(local, code int) {
	if w := b.slots[local]; !w.stubborn {
		w.end(death.Death{ExitCode: code, Stopped: true})
	}
}

func (b *testbed) Fail(local int, why string, _ syscall.Signal) { b.slots[local].say("fail: " + why) }

// gang is what an agent learns of a round, and does to it.
type gang struct {
	*testbed
	exits       chan death.Death // closed when nothing is left of any worker
	revocations chan death.Death
	revoked     chan struct{}
}

func (g *gang) take(e workergroup.Event) {
	switch {
	case e.Exit != nil:
		g.exits <- *e.Exit
	case e.Revocation != nil:
		g.revocations <- *e.Revocation
	case e.Revoked:
		close(g.revoked)
	case e.Gone:
		close(g.exits)
	}
}

func (g *gang) Exits() <-chan death.Death       { return g.exits }
func (g *gang) Revocations() <-chan death.Death { return g.revocations }
func (g *gang) Revoked() <-chan struct{}        { return g.revoked }

func (g *gang) Revoke(sig syscall.Signal, why string, died []death.Death) {
	g.do(func() { g.group.Revoke(sig, why, died) })
}
func (g *gang) Notify(died []death.Death)  { g.do(func() { g.group.Notify(died) }) }
func (g *gang) Stop(sig syscall.Signal)    { g.do(func() { g.group.Stop(sig) }) }
func (g *gang) Kill()                      { g.do(g.group.Kill) }
func (g *gang) Fail(local int, why string) { g.do(func() { g.group.Fail(local, why, time.Now()) }) }

func next(t *testing.T, c *env.Conn) env.Round {
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
