package limit

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/gorun/gorun/scripts/bench-comm/pattern"
)

const batches, few = 9, 3 // of a test; of one whose calls are slow

// measure runs tests in this process. It finds the best way of each with a few calls, and then measures that one as the other contenders
// are measured.
func (p plan) measure(m *mesh, tests []test, out io.Writer) error {
	runtime.LockOSThread()
	e := newEngine(m)
	for _, t := range tests {
		memory := 0
		for _, w := range t.ways {
			memory = max(memory, w.Memory)
		}
		e.memory = make([]byte, memory)
		clear(e.memory) // the first write to a page takes longer
		for _, state := range p.statesOf(t) {
			us, name, err := e.best(t, state, p.seconds)
			if err != nil {
				return fmt.Errorf("%s of %d bytes: %w", t.op, t.bytes, err)
			}
			if e.rank == 0 {
				fmt.Fprintf(out, "result %s %d %s %.4f %s\n", t.op, t.bytes, state, us, name)
			}
		}
	}
	return nil
}

// best returns the time of the best way in microseconds, and its name with the kind of wait.
func (e *engine) best(t test, state string, seconds float64) (us float64, name string, err error) {
	var before func()
	if state == "dirty" {
		before = func() { e.rewrite(t.sent) }
	}
	var way pattern.Way
	var parked bool
	var least float64
	for i, w := range t.ways {
		for _, e.parked = range []bool{false, true} {
			one, err := e.calibrate(before, w, seconds)
			if err != nil {
				return 0, "", err
			}
			if i == 0 && !e.parked || one < least {
				way, parked, least = w, e.parked, one
			}
		}
	}
	e.parked = parked
	took, err := e.median(before, way, seconds, least)
	if t.op == "sendrecv" {
		took /= 2 // there and back
	}
	name = way.Name + ",yield"
	if parked {
		name = way.Name + ",poll"
	}
	return took * 1e6, name, err
}

// rewrite writes new values to what this rank sends, as a program does between two operations.
func (e *engine) rewrite(sent int) {
	e.stamp = 1 - e.stamp
	for rest := e.memory[:sent]; len(rest) > 0; {
		rest = rest[copy(rest, e.values[e.stamp]):]
	}
}

// calibrate returns about how many seconds a call takes.
func (e *engine) calibrate(before func(), w pattern.Way, seconds float64) (one float64, err error) {
	if _, err := e.mean(before, &w, 1); err != nil {
		return 0, err
	}
	for count := 1; count <= 1<<20; count *= 2 {
		mine, err := e.mean(before, &w, count)
		if err == nil {
			one, err = e.slowest(mine)
		}
		if err != nil || one*float64(count) >= seconds/20 {
			return one, err
		}
	}
	return one, nil
}

// median measures several batches of calls, and returns the median of the slowest rank's mean times. A call takes about one seconds.
func (e *engine) median(before func(), w pattern.Way, seconds, one float64) (float64, error) {
	rounds, count := batches, int(seconds/batches/one)
	if count < 1 {
		rounds, count = max(few, int(seconds/one)), 1
	}
	times := make([]float64, rounds)
	for i := range times {
		mine, err := e.mean(before, &w, count)
		if err == nil && before != nil {
			var alone float64
			alone, err = e.mean(before, nil, count)
			mine -= alone
		}
		if err == nil {
			times[i], err = e.slowest(mine)
		}
		if err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[rounds/2], nil
}

// mean returns how long one of count calls takes this rank, with what comes before each; w may be nil.
func (e *engine) mean(before func(), w *pattern.Way, count int) (float64, error) {
	if _, err := e.slowest(0); err != nil {
		return 0, err
	}
	began := time.Now()
	for range count {
		if before != nil {
			before()
		}
		if w != nil {
			if err := e.perform(*w); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(began).Seconds() / float64(count), nil
}
