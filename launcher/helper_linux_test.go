package launcher

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/spool"
)

const patience = 30 * time.Second // when a test gives up; none waits so long if all is well

// The test binary is also the guard and the workers of its tests.
func TestMain(m *testing.M) {
	if os.Getenv("LAUNCHER_TEST_WORKER") != "" {
		behaviours[os.Args[1]](os.Args[2:])
		exit(0)
	}
	if os.Getenv(asAgent) != "" {
		exit(agent())
	}
	_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" "+raceExitsAtOnce)) // a guard gets it
	goleak.VerifyTestMain(m)
}

// raceExitsAtOnce keeps the race detector from waiting a second for other goroutines at every exit.
const raceExitsAtOnce = "atexit_sleep_ms=0"

// exit ends a process without the second that the race detector takes for os.Exit.
func exit(code int) { syscall.Exit(code) }

func workersOf(n int) []WorkerSpec {
	list := make([]WorkerSpec, n)
	for i := range list {
		list[i] = WorkerSpec{Rank: i, Prefix: fmt.Sprintf("[%d] ", i), Env: []string{"LAUNCHER_TEST_WORKER=1", "RANK=" + strconv.Itoa(i)}}
	}
	return list
}

// spec is a Spec of n workers that behave as argv says, with their console in a screen.
func spec(t *testing.T, n int, argv ...string) (Spec, *screen) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen()
	return Spec{Argv: append([]string{exe}, argv...), Workers: workersOf(n), Grace: patience,
		Stdout: s, Stderr: s, Spool: spool.New(), Warn: func(msg string) { t.Errorf("warning: %s", msg) }}, s
}

func start(t *testing.T, s Spec) *Gang {
	t.Helper()
	g, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Kill()
		for range g.Exits() {
		}
	})
	return g
}

// exits waits for the end of the gang.
func exits(t *testing.T, g *Gang) []death.Death {
	t.Helper()
	var all []death.Death
	for {
		e, ok := nextExit(t, g)
		if !ok {
			drain(g)
			return all
		}
		all = append(all, e)
	}
}

func nextExit(t *testing.T, g *Gang) (death.Death, bool) {
	t.Helper()
	select {
	case e, ok := <-g.Exits():
		return e, ok
	case <-time.After(patience):
		t.Fatal("the gang does not end")
		return death.Death{}, false
	}
}

// drain waits until the output of a gang that has ended is written.
func drain(g *Gang) {
	g.spec.Spool.Drain(spool.Timeouts{Still: patience, Total: patience}, nil)
}

// gone waits until a process that is not ours has ended: there is no event for that.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	begin := time.Now()
	for _, pid := range pids {
		for {
			p, ok := proc.Read(pid)
			if !ok || p.Zombie {
				break
			}
			if time.Since(begin) > patience {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
	t.Logf("%v gone after %v", pids, time.Since(begin))
}

// screen is a console that tests can read while it is written.
type screen struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed at the next write
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.buf.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// wait returns once want has been seen n times.
func (s *screen) wait(t *testing.T, want string, n int) {
	t.Helper()
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		text, changed := s.buf.String(), s.changed
		s.mu.Unlock()
		if strings.Count(text, want) >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("no %q (%d times) on the console:\n%s", want, n, text)
		}
	}
}

// pids returns the numbers after word on the console.
func (s *screen) pids(t *testing.T, word string, n int) []int {
	t.Helper()
	s.wait(t, word+" ", n)
	var pids []int
	for line := range strings.Lines(s.String()) {
		if _, after, ok := strings.Cut(line, word+" "); ok {
			pids = append(pids, number(strings.TrimSpace(after)))
		}
	}
	return pids
}
