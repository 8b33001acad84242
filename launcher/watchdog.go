package launcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Expiry is a timer that ran out.
type Expiry struct {
	Scope  string         // what the worker called it
	At     time.Time      // when it ran out
	Pid    int            // of the process that had set it: the worker, or one below it
	Signal syscall.Signal // what that process was sent
}

// A TimerFileError says that Spec.TimerFile cannot be made.
type TimerFileError struct {
	Path string
	Err  error
}

// Error is one line.
func (e *TimerFileError) Error() string {
	return fmt.Sprintf("cannot create the workers' timer file %s (TORCHELASTIC_TIMER_FILE): %v", e.Path, e.Err)
}

// Unwrap returns the system's error.
func (e *TimerFileError) Unwrap() error { return e.Err }

const (
	maxRequest   = 4096                     // bytes of a line: PIPE_BUF, so that the lines of several writers do not mix
	maxGlued     = 64 << 10                 // bytes of a line, with those that were not ended before it
	maxTimers    = 4096                     // of a gang
	maxComplains = 8                        // warnings about requests of a gang's processes that fail
	farAway      = 100 * 365 * 24 * 60 * 60 // seconds
)

// A timerRequest is one line of torch.distributed.elastic.timer's FileTimerClient.
type timerRequest struct {
	pid     int
	scope   string
	expires float64 // seconds since 1970; negative: the timer is released
	signal  syscall.Signal
}

// parseTimer parses a line. The text before its last opening brace may be a line that a writer did not finish.
func parseTimer(line []byte) (timerRequest, bool) {
	line = line[max(0, len(line)-maxRequest):]
	r, ok := decodeTimer(line)
	if brace := bytes.LastIndexByte(line, '{'); !ok && brace > 0 {
		return decodeTimer(line[brace:])
	}
	return r, ok
}

// decodeTimer reads {"version": 1, "pid": 42, "scope_id": "train", "expiration_time": 1700000000.5, "signal": 9}.
func decodeTimer(line []byte) (timerRequest, bool) {
	var r struct {
		Version int      `json:"version"`
		Pid     int      `json:"pid"`
		Scope   *string  `json:"scope_id"`
		Expires *float64 `json:"expiration_time"`
		Signal  *int     `json:"signal"`
	}
	if json.Unmarshal(line, &r) != nil || r.Version != 1 || r.Pid <= 0 || r.Scope == nil || r.Expires == nil ||
		r.Signal == nil || *r.Signal > 64 {
		return timerRequest{}, false
	}
	return timerRequest{r.Pid, *r.Scope, *r.Expires, syscall.Signal(max(0, *r.Signal))}, true
}

// deadline returns when a request's time is up. Setting the clock afterwards does not change it.
func (r timerRequest) deadline(now time.Time) time.Time {
	seconds := r.expires - float64(now.UnixNano())/1e9
	return now.Add(time.Duration(max(-farAway, min(seconds, farAway)) * 1e9))
}

type timerKey struct {
	pid   int
	scope string
}

type timer struct {
	timerKey
	deadline  time.Time
	signal    syscall.Signal // for the process; 0: none
	born      uint64         // the process's start, in clock ticks: the pid alone may become another's
	localRank int            // whose process it is; -1: its worker has ended
}

// timers are the running timers. They have no clock.
type timers map[timerKey]timer

// set starts a timer, or changes it. It returns false if there are too many.
func (ts timers) set(t timer) bool {
	if _, ok := ts[t.timerKey]; !ok && len(ts) >= maxTimers {
		return false
	}
	ts[t.timerKey] = t
	return true
}

// move makes all timers run out later.
func (ts timers) move(by time.Duration) {
	for key, t := range ts {
		t.deadline = t.deadline.Add(by)
		ts[key] = t
	}
}

// next returns the earliest deadline; ok is false if there is none.
func (ts timers) next() (at time.Time, ok bool) {
	for _, t := range ts {
		if !ok || t.deadline.Before(at) {
			at, ok = t.deadline, true
		}
	}
	return at, ok
}

// expired removes and returns the timers that have run out by now, in the order in which they did.
func (ts timers) expired(now time.Time) (list []timer) {
	for key, t := range ts {
		if !t.deadline.After(now) {
			list = append(list, t)
			delete(ts, key)
		}
	}
	slices.SortFunc(list, func(a, b timer) int { return a.deadline.Compare(b.deadline) })
	return list
}

// watched is what a watchdog needs from a gang.
type watched interface {
	// read returns what has come from the workers, without waiting. It is valid until the next call.
	read() []byte
	// owner finds a process of the gang. The error is os.ErrProcessDone if it has ended, and errStranger if it is
	// not the gang's.
	owner(pid int) (born uint64, localRank int, err error)
	// signal sends a process the signal of its timer, 0 being none. The error is os.ErrProcessDone if it has ended.
	signal(t timer) error
}

var errStranger = errors.New("it is neither a worker nor started by one")

// A watchdog signals the processes of a gang whose timers run out. The goroutine of run owns it.
type watchdog struct {
	gang      watched
	warn      func(format string, args ...any)
	timers    timers
	complains int
}

// run goes on until the file is closed. ready says that there is something to read.
func (w *watchdog) run(ready <-chan struct{}, f *timerFile) {
	in := lines{max: maxGlued, emit: func(line []byte, _ bool) { w.obey(line) }}
	alarm := time.NewTimer(0)
	for {
		alarm.Stop()
		if next, ok := w.timers.next(); ok {
			alarm.Reset(time.Until(next))
		}
		select {
		case <-ready:
			in.feed(w.gang.read())
		case <-alarm.C:
			in.feed(w.gang.read()) // a release that is there is in time, however late this process is
			w.expire(time.Now())
		case <-f.suspends:
			select {
			case by := <-f.passed:
				in.feed(w.gang.read()) // of the time before: the gang is still suspended
				w.timers.move(by)
				f.moved <- struct{}{}
			case <-f.quit:
				return
			}
		case <-f.quit:
			return
		}
	}
}

// obey carries out a request.
func (w *watchdog) obey(line []byte) {
	r, ok := parseTimer(line)
	key := timerKey{r.pid, r.scope}
	switch {
	case !ok:
		w.complain("a line in the workers' timer file is no timer: %.200q", line)
	case r.expires < 0:
		delete(w.timers, key)
	default:
		err := w.set(key, r)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			w.complain("timer %.100q of process %d is not set: %v", r.scope, r.pid, err)
		}
	}
}

func (w *watchdog) set(key timerKey, r timerRequest) error {
	born, localRank, err := w.gang.owner(r.pid)
	if err != nil {
		return err
	}
	if !w.timers.set(timer{key, r.deadline(time.Now()), r.signal, born, localRank}) {
		return fmt.Errorf("there are %d", maxTimers)
	}
	return nil
}

func (w *watchdog) expire(now time.Time) {
	for _, t := range w.timers.expired(now) {
		who := fmt.Sprintf("process %d", t.pid)
		if t.localRank >= 0 {
			who += fmt.Sprintf(" (local rank %d)", t.localRank)
		}
		err := w.gang.signal(t)
		switch {
		case errors.Is(err, os.ErrProcessDone):
		case err != nil:
			w.warn("timer %.100q of %s ran out, but it cannot be signalled: %v", t.scope, who, err)
		case t.signal == 0:
			w.warn("timer %.100q of %s ran out; no signal was asked for", t.scope, who)
		default:
			w.warn("timer %.100q of %s ran out: it was sent %v", t.scope, who, Exit{Signal: t.signal})
		}
	}
}

// complain warns about a worker's request that fails, without flooding the log.
func (w *watchdog) complain(format string, args ...any) {
	w.complains++
	switch {
	case w.complains < maxComplains:
		w.warn(format, args...)
	case w.complains == maxComplains:
		w.warn(format+"; more of this kind are not logged", args...)
	}
}

func newTimerFile(file *os.File) *timerFile {
	return &timerFile{file: file, quit: make(chan struct{}), suspends: make(chan struct{}), passed: make(chan time.Duration), moved: make(chan struct{}, 1)}
}

// A timerFile is the FIFO to which workers write requests for their watchdog.
type timerFile struct {
	file     *os.File
	quit     chan struct{}
	suspends chan struct{}      // asks for suspend
	passed   chan time.Duration // the time that resume passes on
	moved    chan struct{}      // the answer to that
	running  sync.WaitGroup
}
