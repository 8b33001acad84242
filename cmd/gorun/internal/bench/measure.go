package bench

import (
	"context"
	"slices"
	"time"

	"github.com/gorun/gorun/comm"
)

// How many calls are measured by default.
const (
	enough        = 100 * time.Millisecond // that they take
	fewest        = 5
	most          = 20_000
	estimateCalls = 3
)

// A meter measures calls. All ranks do the same at the same time.
type meter struct {
	ctx   context.Context
	g     *comm.Group
	c     *Config
	spans []float64 // scratch memory: seconds of each call
	wrong int       // elements of all calls so far that were wrong on this rank
}

// A measurement is the duration of a call, in seconds.
type measurement struct {
	calls    int
	mean     float64 // the slowest rank's
	p50, p99 float64 // of each call's slowest rank
}

// measure measures a call. What a rank does between calls is not counted.
func (m *meter) measure(c *call) (r measurement, err error) {
	c.clear()
	if _, err := m.batch(c, m.c.Warmup); err != nil {
		return r, err
	}
	if r.calls = m.c.Iterations; r.calls == 0 {
		if r.calls, err = m.estimate(c); err != nil {
			return r, err
		}
	}
	mean, err := m.mean(c, r.calls)
	if err != nil {
		return r, err
	}
	if r.mean, err = m.slowest(mean); err != nil || !m.c.P99 {
		return r, err
	}
	r.p50, r.p99, err = m.percentiles(c, r.calls)
	return r, err
}

// estimate returns how many calls to measure, the same number on all ranks.
func (m *meter) estimate(c *call) (int, error) {
	one, err := m.mean(c, estimateCalls)
	if err == nil {
		one, err = m.slowest(one)
	}
	if err != nil {
		return 0, err
	}
	return int(min(max(enough.Seconds()/max(one, 1e-9), fewest), most)), nil
}

// mean returns the mean duration of n calls on this rank, without the time for rewriting buffers, which is measured separately.
func (m *meter) mean(c *call, n int) (float64, error) {
	if err := comm.Barrier(m.ctx, m.g); err != nil {
		return 0, err
	}
	took, err := m.batch(c, n)
	if err != nil || !m.c.Dirty {
		return took.Seconds() / float64(n), err
	}
	if err := comm.Barrier(m.ctx, m.g); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range n {
		c.rewrite(i)
	}
	took -= time.Since(start)
	return max(took, 0).Seconds() / float64(n), nil
}

// batch makes n calls and returns how long they took.
func (m *meter) batch(c *call, n int) (time.Duration, error) {
	start := time.Now()
	for i := range n {
		if m.c.Dirty {
			c.rewrite(i)
		}
		if err := c.do(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// percentiles makes n calls and measures each of them.
func (m *meter) percentiles(c *call, n int) (p50, p99 float64, err error) {
	m.spans = slices.Grow(m.spans[:0], n)[:n]
	if err := comm.Barrier(m.ctx, m.g); err != nil {
		return 0, 0, err
	}
	for i := range n {
		if m.c.Dirty {
			c.rewrite(i)
		}
		start := time.Now()
		if err := c.do(); err != nil {
			return 0, 0, err
		}
		m.spans[i] = time.Since(start).Seconds()
	}
	if err := comm.AllReduce(m.ctx, m.g, m.spans, comm.Max); err != nil {
		return 0, 0, err
	}
	slices.Sort(m.spans)
	return percentile(m.spans, 50), percentile(m.spans, 99), nil
}

// percentile returns the smallest of the sorted values that this percentage of them do not exceed.
func percentile(sorted []float64, percent int) float64 {
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// check makes a call and counts the elements that are wrong, on all ranks together.
func (m *meter) check(c *call) (wrong int, err error) {
	for range m.c.Checks {
		c.prepare()
		if err := comm.Barrier(m.ctx, m.g); err != nil { // nobody's buffer changes under a call
			return 0, err
		}
		if err := c.do(); err != nil {
			return 0, err
		}
		wrong += c.wrong()
	}
	m.wrong += wrong
	sum := []int{wrong}
	err = comm.AllReduce(m.ctx, m.g, sum, comm.Sum)
	return sum[0], err
}

func (m *meter) slowest(seconds float64) (float64, error) {
	all := []float64{seconds}
	err := comm.AllReduce(m.ctx, m.g, all, comm.Max)
	return all[0], err
}
