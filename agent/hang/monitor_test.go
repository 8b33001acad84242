package hang

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/progress"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("GORUN_TEST_SUSPENDED"); file != "" {
		suspendItself(file)
	}
	goleak.VerifyTestMain(m)
}

// suspendItself is a worker that answers questions, until it stops.
func suspendItself(file string) {
	if _, err := progress.Serve(file, func(bool) *progress.Status { return &progress.Status{} }); err != nil {
		panic(err)
	}
	if err := progress.Touch(file); err != nil {
		panic(err)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(patience)
	os.Exit(1)
}

func ignored([]int) {}

const patience = 30 * time.Second // when a test gives up

// newWorkers returns n workers, which are this process, with their files.
func newWorkers(t *testing.T, n int) []Worker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "progress")
	stamps, err := Prepare(dir, n)
	if err != nil {
		t.Fatal(err)
	}
	workers := make([]Worker, n)
	for i := range workers {
		workers[i] = Worker{Rank: 10 + i, LocalRank: i, Pid: os.Getpid(), File: File(dir, i), Since: stamps[i]}
	}
	if again, err := Prepare(dir, n); err != nil || !again[0].Equal(stamps[0]) {
		t.Errorf("the files are not left as they are: %v, %v", again, err)
	}
	return workers
}

// touching touches a file until it is ended.
func touching(t *testing.T, w Worker) (end func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if err := progress.Touch(w.File); err != nil {
				t.Error(err)
			}
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestMonitor: of those who report progress, the one that stops is found; one that never does, or has ended, is not.
func TestMonitor(t *testing.T) {
	workers := newWorkers(t, 4)
	const timeout = 500 * time.Millisecond
	var blocked atomic.Bool
	unwatched := make(chan []int, 9)
	m := Watch(timeout, workers, false, blocked.Load, func(ranks []int) { unwatched <- ranks })
	defer m.Close()
	end0, end1, end2 := touching(t, workers[0]), touching(t, workers[1]), touching(t, workers[2]) // and 3 never does
	defer end0()
	time.Sleep(timeout)
	end2()
	m.Ended(2)
	select {
	case h := <-m.Hangs():
		t.Fatalf("%+v", h)
	case <-time.After(3 * timeout):
	}
	m.Pause(true)
	end1()
	select {
	case h := <-m.Hangs():
		t.Fatalf("suspended: %+v", h)
	case <-time.After(3 * timeout):
	}
	blocked.Store(true)
	m.Pause(false)
	select {
	case h := <-m.Hangs():
		t.Fatalf("nobody reads the output: %+v", h)
	case <-time.After(3 * timeout):
	}
	blocked.Store(false)
	select {
	case h := <-m.Hangs():
		if h.Rank != 11 || h.Idle < timeout || !strings.HasPrefix(h.String(), "it made no progress for ") {
			t.Errorf("%+v: %s", h, h)
		}
	case <-time.After(patience):
		t.Error("it is not found")
	}
	select {
	case h := <-m.Hangs(): // it is delivered again
		if h.Rank != 11 {
			t.Errorf("%+v", h)
		}
	case <-time.After(patience):
		t.Error("it is found only once")
	}
	if ranks := <-unwatched; len(unwatched) > 0 || !slices.Equal(ranks, []int{13}) {
		t.Errorf("nothing is known of ranks %v, and is said %d times more", ranks, len(unwatched))
	}
	m.Close()
	m.Pause(true) // which nobody hears any more
	m.Ended(1)
}

// TestWaitsForAnother: a rank that waits for one of another node does not hang; when it waits no more, it does.
func TestWaitsForAnother(t *testing.T) {
	workers := newWorkers(t, 1)
	var waits atomic.Bool
	waits.Store(true)
	s, err := progress.Serve(workers[0].File, func(bool) *progress.Status {
		status := &progress.Status{Rank: 10, Operation: waits.Load()}
		if waits.Load() {
			status.Waits = []progress.Wait{{Rank: 10, For: 3, In: "Barrier #1"}}
			status.Suspect = &progress.Suspect{Rank: 3}
		}
		return status
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := Watch(100*time.Millisecond, workers, false, func() bool { return false }, ignored)
	defer m.Close()
	touching(t, workers[0])()
	select {
	case h := <-m.Hangs():
		t.Fatalf("%+v", h)
	case <-time.After(time.Second):
	}
	waits.Store(false)
	select {
	case <-m.Hangs():
	case <-time.After(patience):
		t.Error("it is not found")
	}
}

// TestWatchPace: the worker that takes longer between operations is named once in a period, and the one that does fewer steps.
func TestWatchPace(t *testing.T) {
	const period = 2 * time.Second
	for _, kind := range []string{"operations", "steps"} {
		workers := newWorkers(t, 3)
		var count atomic.Uint64
		quit := make(chan struct{})
		var stepping sync.WaitGroup
		for i, w := range workers {
			each := time.Duration(2+38*(i%2)) * time.Millisecond
			if kind == "steps" {
				stepping.Go(func() {
					for n := 1; ; n++ {
						_ = os.WriteFile(w.File+".new", []byte(fmt.Sprintln(n)), 0o600)
						_ = os.Rename(w.File+".new", w.File)
						select {
						case <-quit:
							return
						case <-time.After(each):
						}
					}
				})
				continue
			}
			s, err := progress.Serve(w.File, func(bool) *progress.Status {
				return &progress.Status{Rank: w.Rank, Pace: &progress.Pace{Group: "g", Operations: count.Add(100), Between: each, Samples: 63}}
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
		}
		m := Watch(time.Hour, workers, false, func() bool { return false }, ignored)
		lines, done := make(chan string, 100), make(chan struct{})
		go func() {
			defer close(done)
			m.WatchPace(period, func(text string) { lines <- text })
		}()
		want := regexp.MustCompile(`^rank 11 is slower than the other ranks of this node by a factor of [0-9.]+: it takes .* from one (operation|step) to the next, and they .*, over the last \d+$`)
		begun := time.Now()
		for range 2 {
			select {
			case text := <-lines:
				if !want.MatchString(text) {
					t.Errorf("%s: %s", kind, text)
				}
			case <-time.After(patience):
				t.Fatalf("%s: nobody is named", kind)
			}
		}
		if passed := time.Since(begun); passed < period {
			t.Errorf("two lines within %v", passed)
		}
		m.Close()
		close(quit)
		<-done
		stepping.Wait()
	}
}
