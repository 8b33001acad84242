package hang

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// A Worker is a process to watch.
type Worker struct {
	Rank, LocalRank, Pid int // Pid is 0 if it has ended

	File  string    // that it touches when it makes progress
	Since time.Time // the file's modification time before the worker could touch it (see Stamp); zero: that when the watch begins
}

// Stamp is the modification time of a file; zero: it cannot be read.
func Stamp(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Prepare creates the files of n workers in a directory, and the directory, which nobody else may enter. It leaves those that exist as
// they are. It returns their modification times.
func Prepare(dir string, n int) (stamps []time.Time, err error) {
	stamps = make([]time.Time, n)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return stamps, err
	}
	for i := range stamps {
		path := File(dir, i)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return stamps, err
		}
		stamps[i] = Stamp(path)
	}
	return stamps, nil
}

// File is the file of the worker with a local rank.
func File(dir string, local int) string { return filepath.Join(dir, strconv.Itoa(local)) }

// A Hang is a worker that hangs.
type Hang struct {
	Worker
	Idle   time.Duration // since it made progress
	Reason string        // in words, one line, about "it"
	Tied   []int         // the ranks of which it is one, and any may be the one that hangs; nil: it is this one
}

// String is one line about the worker, without its name.
func (h Hang) String() string {
	text := fmt.Sprintf("it made no progress for %v", h.Idle.Round(100*time.Millisecond))
	if h.Reason != "" {
		text += "; " + h.Reason
	}
	return text
}

// A Monitor watches the workers of one round of a node.
type Monitor struct {
	timeout, interval time.Duration
	workers           []Worker
	others            bool // the job has other nodes
	isBlocked         func() bool
	unwatched         func(ranks []int)

	hangs  chan Hang
	ended  chan int
	gone   []atomic.Bool // by worker: it has ended
	paused atomic.Bool
	ctx    context.Context // until Close
	cancel func()
}

const (
	shortestInterval = 20 * time.Millisecond // between two looks
	longestInterval  = time.Second
	askTimeout       = 2 * time.Second // in which a worker has to say whom it waits for
	longestStill     = 5 * time.Second // for which a worker has to sleep, to be one that does not look for something again and again
)

// Watch begins to watch workers, which are all of the job unless it has other nodes. It calls unwatched at most once: if workers have not
// reported any progress within the timeout, with their ranks. No time counts while isBlocked says that they may have to wait for somebody to
// read their output.
func Watch(timeout time.Duration, workers []Worker, others bool, isBlocked func() bool, unwatched func(ranks []int)) *Monitor {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Monitor{
		timeout: timeout, interval: min(max(timeout/25, shortestInterval), longestInterval),
		workers: workers, others: others, isBlocked: isBlocked, unwatched: unwatched,
		gone:  make([]atomic.Bool, len(workers)),
		hangs: make(chan Hang, 1), ended: make(chan int, len(workers)), ctx: ctx, cancel: cancel,
	}
	go m.run()
	return m
}

// Hangs delivers the worker that hangs, and does so repeatedly as long as it hangs.
func (m *Monitor) Hangs() <-chan Hang { return m.hangs }

// Ended tells the monitor that the worker at an index has ended.
func (m *Monitor) Ended(index int) {
	m.gone[index].Store(true)
	m.ended <- index
}

// Pause stops the clocks of the workers, or, if on is false, lets them go on.
func (m *Monitor) Pause(on bool) { m.paused.Store(on) }

// Close ends the monitor. It does not wait: the files may be in a file system that does not answer.
func (m *Monitor) Close() { m.cancel() }

func (m *Monitor) run() {
	since := m.stamps()
	for i, w := range m.workers {
		if !w.Since.IsZero() {
			since[i] = w.Since
		}
	}
	c := newClock(2*m.interval, since)
	again := time.NewTicker(m.interval)
	defer again.Stop()
	last, asked, said := time.Now(), time.Duration(0), false
	for {
		select {
		case index := <-m.ended:
			c.end(index)
		case <-m.ctx.Done():
			return
		case <-again.C:
			passed := time.Since(last)
			last = last.Add(passed)
			if m.paused.Load() {
				continue
			}
			if m.isBlocked() {
				passed = 0
			}
			c.observe(passed, m.stamps())
			said = said || m.sayUnwatched(c)
			if asked -= passed; asked > 0 || !m.isLate(c) {
				continue
			}
			if m.isTraced() {
				c.restart()
				continue
			}
			if hang, ok := m.suspect(c); ok && !m.paused.Load() {
				select {
				case m.hangs <- hang:
				default: // the one before has not been taken yet
				}
			}
			asked = min(max(m.timeout/4, 10*m.interval), 10*time.Second) // before the next time
		}
	}
}

// sayUnwatched says who has reported nothing within the timeout, if anybody has.
func (m *Monitor) sayUnwatched(c *clock) bool {
	var ranks []int
	for i, w := range m.workers {
		if c.hasNotBegun(i, m.timeout) {
			ranks = append(ranks, w.Rank)
		}
	}
	if ranks != nil {
		m.unwatched(ranks)
	}
	return ranks != nil
}

// stamps are the modification times of the files.
func (m *Monitor) stamps() []time.Time {
	stamps := make([]time.Time, len(m.workers))
	for i, w := range m.workers {
		stamps[i] = Stamp(w.File)
	}
	return stamps
}

func (m *Monitor) isLate(c *clock) bool {
	for i := range m.workers {
		if c.idle(i) >= m.timeout {
			return true
		}
	}
	return false
}

// isTraced reports whether a debugger has stopped a worker.
func (m *Monitor) isTraced() bool {
	var running []Worker
	for i, w := range m.workers {
		if !m.gone[i].Load() {
			running = append(running, w)
		}
	}
	return anyTraced(running)
}

// suspect asks the workers for whom they wait, and returns the one that hangs.
func (m *Monitor) suspect(c *clock) (Hang, bool) {
	ctx, cancel := context.WithTimeout(m.ctx, askTimeout)
	defer cancel()
	members := make([]member, len(m.workers))
	var asking sync.WaitGroup
	for i, w := range m.workers {
		asking.Go(func() {
			members[i].rank = w.Rank
			members[i].status, members[i].silent = ask(ctx, w, false)
		})
	}
	asking.Wait()
	others := m.others
	for i := range members {
		others = others || c.hasNotBegun(i, 0)
	}
	m.locate(members, c, others)
	c.observe(0, m.stamps())
	for i := range members {
		members[i].idle = c.idle(i)
	}
	v, ok := suspect(members, m.timeout, others)
	if !ok {
		return Hang{}, false
	}
	return Hang{m.workers[v.index], members[v.index].idle, because(members, v), v.tied}, true
}

// locate finds out where those workers are that are late and do not say for whom they wait. It need not if that is the only one, and it
// waits for no other.
func (m *Monitor) locate(members []member, c *clock, others bool) {
	var late []int
	for i := range members {
		if members[i].isPlain() && c.idle(i) >= m.timeout {
			late = append(late, i)
		}
	}
	if len(late) == 1 && !others {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, collectTimeout)
	defer cancel()
	still := min(m.timeout/2, longestStill)
	var looking sync.WaitGroup
	for _, i := range late {
		looking.Go(func() {
			does, found := activityOf(ctx, m.workers[i], still), look(ctx, m.workers[i])
			members[i].place = place{stack: found.stack, waiting: found.waiting, does: does}
		})
	}
	looking.Wait()
}

// ask asks a worker for its status. isSilent reports whether the worker usually answers, but did not in time, or cannot since it is suspended.
func ask(ctx context.Context, w Worker, stacks bool) (status *progress.Status, isSilent bool) {
	status, err := progress.Ask(ctx, w.File, stacks, func(pid int) bool { return !isSuspended(pid) })
	if err != nil {
		return nil, !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	}
	return status, false
}
