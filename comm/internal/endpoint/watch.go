package endpoint

import (
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
)

// shortestNap and longestNap are how long watch leaves streams to those who poll before it looks again: longer each time, as
// to look takes the mutex, and a processor, from them.
const (
	shortestNap = time.Millisecond
	longestNap  = 8 * time.Millisecond
)

// startWatch makes sure that watch runs, and says whether it does. The mutex is held.
func (e *Endpoint) startWatch() bool {
	if e.ready != nil {
		return true
	}
	set, err := epoll.New()
	if err != nil {
		return false
	}
	e.ready = set
	e.wg.Add(1)
	go e.watch()
	return true
}

// watch moves bytes when nobody polls. It sleeps until a stream on which it is armed is ready, which it then no longer
// is: for as long as others poll, it lets them, and looks again every now and then, also whether there are more such streams.
// When there is nothing to do it arms all streams and sleeps again.
func (e *Endpoint) watch() {
	defer e.wg.Done()
	pause := shortestNap
	nap := time.NewTimer(pause)
	defer nap.Stop()
	seen := uint64(0)
	for {
		ready, err := e.ready.Wait()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.disarm(ready)
		for busy := true; busy; {
			if e.polling || e.waiting == 0 && e.polls != seen {
				seen = e.polls
				e.napping = true
				e.mu.Unlock()
				nap.Reset(pause)
				select {
				case <-nap.C:
					pause = min(2*pause, longestNap)
				case <-e.nudged:
					pause = shortestNap
				}
				if ready, err = e.ready.Ready(); err != nil {
					return
				}
				e.mu.Lock()
				e.napping = false
				e.disarm(ready)
				continue
			}
			busy, pause = false, shortestNap
			for i := len(e.streams) - 1; i >= 0; i-- {
				busy = e.move(e.streams[i]) || busy
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

// nudge wakes watch from its nap: somebody does not poll any longer, but waits. The mutex is held.
func (e *Endpoint) nudge() {
	if !e.napping {
		return
	}
	select {
	case e.nudged <- struct{}{}:
	default:
	}
}

// armAll lets watch be woken by any stream. The mutex is held.
func (e *Endpoint) armAll() {
	for _, p := range e.streams {
		if !p.armed && !p.ended {
			e.arm(p)
		}
	}
}

// arm lets watch be woken when p has sent something, or there is room for what is queued for it. The mutex is held.
func (e *Endpoint) arm(p *peer) {
	set := e.ready.Add
	if p.armed {
		set = e.ready.Change
	}
	if err := set(p.stream.Descriptor(), p.rank, p.stream.Arm(p.out.Len() > 0 && !p.broken)); err != nil {
		p.ended = true
		e.wg.Go(func() { e.broke(p, err) })
	}
	p.armed = true
}

// disarm says that watch is no longer woken by the streams of ranks. The mutex is held.
func (e *Endpoint) disarm(ranks []int) {
	for _, rank := range ranks {
		p := e.peers[rank]
		p.armed = false
		if p.stream != nil {
			_ = e.ready.Remove(p.stream.Descriptor())
		}
	}
}
