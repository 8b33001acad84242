package hang

import "time"

// A clock counts for each worker how long it has made no progress. It does not read the time: observe tells it how much has passed.
type clock struct {
	most    time.Duration // the most that counts between two observations: if more has passed, this process was suspended
	workers []idleness
}

type idleness struct {
	stamp    time.Time // the last seen modification time of its file
	reports  bool      // stamp has changed since the beginning
	hasEnded bool
	idle     time.Duration // since stamp changed, or since the beginning
}

// newClock returns a clock for workers whose files have these modification times; zero: there is no file.
func newClock(most time.Duration, stamps []time.Time) *clock {
	c := &clock{most: most, workers: make([]idleness, len(stamps))}
	for i := range stamps {
		c.workers[i].stamp = stamps[i]
	}
	return c
}

// observe records the modification times, and how much time has passed since the last call. A time is zero if the file cannot be read now.
func (c *clock) observe(passed time.Duration, stamps []time.Time) {
	for i := range c.workers {
		w := &c.workers[i]
		if w.idle += min(max(passed, 0), c.most); !stamps[i].IsZero() && !stamps[i].Equal(w.stamp) {
			w.stamp, w.reports, w.idle = stamps[i], true, 0
		}
	}
}

// restart forgets how long the workers have made no progress.
func (c *clock) restart() {
	for i := range c.workers {
		c.workers[i].idle = 0
	}
}

// hasNotBegun reports whether a worker has reported nothing within the timeout, and has not ended.
func (c *clock) hasNotBegun(index int, timeout time.Duration) bool {
	w := &c.workers[index]
	return !w.reports && !w.hasEnded && w.idle >= timeout
}

// end records that a worker has ended.
func (c *clock) end(index int) { c.workers[index].hasEnded = true }

// idle is how long a worker has made no progress; 0: it has never reported any, or has ended.
func (c *clock) idle(index int) time.Duration {
	if w := &c.workers[index]; w.reports && !w.hasEnded {
		return w.idle
	}
	return 0
}
