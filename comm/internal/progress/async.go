package progress

import (
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
)

// shortestPause and longestPause are how long the engine's goroutine leaves streams to those who poll before it looks again: longer
// each time, as to look takes the mutex, and a processor, from them.
const (
	shortestPause = time.Millisecond
	longestPause  = 8 * time.Millisecond
)

// Start makes sure that the engine's goroutine runs, and reports whether it does. The mutex is held.
func (e *Engine) Start() bool {
	if e.ready != nil {
		return true
	}
	set, err := epoll.New()
	if err != nil {
		return false
	}
	e.ready = set
	e.async.Go(e.moveAsync)
	return true
}

// moveAsync moves bytes when nobody polls. It sleeps until a stream on which it is armed is ready, which it then no longer
// is: for as long as others poll, it lets them, and looks again every now and then, also whether there are more such streams.
// When there is nothing to do it arms all streams and sleeps again.
func (e *Engine) moveAsync() {
	pause := shortestPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	seen := uint64(0)
	for {
		ready, err := e.ready.Wait()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.disarm(ready)
		for busy := true; busy; {
			if e.polling || e.parked == 0 && e.polls != seen {
				seen = e.polls
				e.isPaused = true
				e.mu.Unlock()
				timer.Reset(pause)
				select {
				case <-timer.C:
					pause = min(2*pause, longestPause)
				case <-e.resume:
					pause = shortestPause
				}
				if ready, err = e.ready.Ready(); err != nil {
					return
				}
				e.mu.Lock()
				e.isPaused = false
				e.disarm(ready)
				continue
			}
			busy, pause = false, shortestPause
			for i := len(e.conns) - 1; i >= 0; i-- {
				busy = e.conns[i].mover.Move() || busy
			}
			if !busy {
				e.armAll()
			}
			e.mu.Unlock() // let others in
			e.mu.Lock()
		}
		e.mu.Unlock()
	}
}

// endPause ends the pause of the engine's goroutine: somebody does not poll any longer, but waits. The mutex is held.
func (e *Engine) endPause() {
	if !e.isPaused {
		return
	}
	select {
	case e.resume <- struct{}{}:
	default:
	}
}

// armAll lets the engine's goroutine be woken by any stream. The mutex is held.
func (e *Engine) armAll() {
	for _, c := range e.conns {
		if !c.armed && !c.Ended {
			e.Arm(c)
		}
	}
}

// Arm lets the engine's goroutine be woken when there is something to read from c, or room for output. The mutex is held.
func (e *Engine) Arm(c *Conn) {
	set := e.ready.Add
	if c.armed {
		set = e.ready.Change
	}
	if err := set(c.Stream.Descriptor(), c.rank, c.Stream.Arm(c.mover.HasOutput())); err != nil {
		c.mover.Fail(err)
	}
	c.armed = true
}

// AddOutput says that there is output that c had no room for. The mutex is held.
func (e *Engine) AddOutput(c *Conn) {
	if c.armed {
		e.Arm(c)
	}
}

// disarm says that the engine's goroutine is no longer woken by the streams to ranks. The mutex is held.
func (e *Engine) disarm(ranks []int) {
	for _, rank := range ranks {
		c := e.Conn(rank)
		c.armed = false
		if c.Stream != nil {
			_ = e.ready.Remove(c.Stream.Descriptor())
		}
	}
}
