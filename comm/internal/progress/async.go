package progress

import (
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
)

// While another goroutine polls, the engine's goroutine pauses. Each pause is twice as long as the one before, because looking takes the
// mutex, and a processor, from the goroutine that polls.
const (
	shortestPause = time.Millisecond
	longestPause  = 8 * time.Millisecond
)

// Start starts the engine's goroutine, unless it runs already, and reports whether it runs. The mutex is held.
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

// moveAsync is the engine's goroutine. It sleeps until an armed stream is ready, and disarms it. As long as another goroutine polls, it
// pauses, and looks again now and then. When no goroutine polls, it moves bytes. When there are none to move, it arms all streams and
// sleeps again.
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

// endPause ends the pause of the engine's goroutine, because a goroutine waits that does not poll. The mutex is held.
func (e *Engine) endPause() {
	if !e.isPaused {
		return
	}
	select {
	case e.resume <- struct{}{}:
	default:
	}
}

// armAll arms all streams. The mutex is held.
func (e *Engine) armAll() {
	for _, c := range e.conns {
		if !c.armed && !c.Ended {
			e.Arm(c)
		}
	}
}

// Arm makes the engine's goroutine wake up when c is readable or, if there is output, writable. The mutex is held.
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

// AddOutput says that c had no room for all output. The mutex is held.
func (e *Engine) AddOutput(c *Conn) {
	if c.armed {
		e.Arm(c)
	}
}

// disarm is the opposite of Arm, for the streams to ranks. The mutex is held.
func (e *Engine) disarm(ranks []int) {
	for _, rank := range ranks {
		c := e.Conn(rank)
		c.armed = false
		if c.Stream != nil {
			_ = e.ready.Remove(c.Stream.Descriptor())
		}
	}
}
