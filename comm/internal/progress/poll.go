package progress

import (
	"runtime"
	"time"

	"github.com/gorun/gorun/comm/internal/wait"
)

const (
	// spinTime is how long a goroutine polls while nothing comes. It is longer than a peer takes to wake up and answer. Otherwise two
	// ranks that have parked once would wake each other for every message.
	spinTime = 200 * time.Microsecond
	// sharedSpinTime is spinTime where others want the processor: the goroutine yields or sleeps in between.
	sharedSpinTime = time.Millisecond
	// mostYields is how often it yields there before it sleeps, if looking takes a system call. A thread that only yields may run again
	// and again before the thread that it waits for, or only after all threads that do not yield.
	mostYields = 100
	// goschedTime is how often other goroutines get their turn while nothing comes. Not more often: it wakes another thread.
	goschedTime = 50 * time.Microsecond
	// memoryTurns is the number of idle turns between looks at the clock, where a turn takes no system call.
	memoryTurns = 16
	// otherTurns: one turn in so many also polls a stream other than the one that the request waits for.
	otherTurns = 4
)

// BeginPoll counts that the caller is about to poll a stream by other means, and reports whether it may: nobody else polls. The mutex is
// held.
func (e *Engine) BeginPoll() bool {
	e.polls++
	return !e.polling
}

// Poll moves bytes until r has ended or nothing has come for a while, unless somebody does already. c is the stream that r waits for,
// or nil if any will do. The mutex is held, and let go now and then.
func (e *Engine) Poll(r *Request, c *Conn) {
	if e.polling || len(e.conns) == 0 || c != nil && c.Stream == nil {
		return
	}
	e.polling = true
	e.polls++
	defer e.endPoll()
	var idleSince, goschedAt time.Duration // when bytes, and the turn of other goroutines, came last, from start; 0: not yet
	for turn, yields := 0, 0; !r.Ended() && len(e.conns) > 0; turn++ {
		other := e.conns[turn/otherTurns%len(e.conns)]
		if e.turn(c, other, turn%otherTurns == otherTurns-1) {
			idleSince, yields = 0, 0
			continue
		}
		if r.Ended() {
			break
		}
		if other.Memory != nil && turn%memoryTurns > 0 && !e.woken {
			continue
		}
		now := time.Since(start)
		if idleSince == 0 {
			idleSince, goschedAt = now, now
		} else if now-idleSince > e.spinTime() {
			break
		}
		if yields == acknowledgeTurns {
			e.acknowledge(c)
		}
		gosched := e.woken || e.opt.SharesProcess && e.opt.Oversubscribed || now-goschedAt > goschedTime && !e.contention.IsShared()
		if gosched {
			goschedAt = now
		}
		e.woken = false
		action := e.contention.Next(now, now-idleSince)
		if yields++; yields > mostYields && action == wait.Yield && e.contention.IsShared() && other.Memory == nil {
			action = wait.Sleep
		}
		if action == wait.Sleep && !gosched {
			e.sleep(sharedSpinTime)
			yields = 0
			continue
		}
		e.mu.Unlock()
		if gosched {
			runtime.Gosched()
		}
		if action == wait.Yield {
			e.yield()
		}
		e.mu.Lock()
	}
}

func (e *Engine) endPoll() {
	e.polling = false
	e.passTurn()
}

// spinTime is how long a goroutine polls while nothing comes.
func (e *Engine) spinTime() time.Duration {
	if e.contention.IsShared() {
		return sharedSpinTime
	}
	return spinTime
}

// yield lets another thread run on this processor, if one waits for it.
func (e *Engine) yield() {
	began := time.Since(start)
	e.yieldTo()
	ended := time.Since(start)
	e.contention.Yielded(ended, ended-began)
}

// turn moves some bytes to and from c, and reports whether there were any. If both is set, it then does the same for other. If c is nil, other
// takes its place. The mutex is held.
func (e *Engine) turn(c, other *Conn, both bool) bool {
	if c == nil {
		return other.mover.Move()
	}
	moved := c.Stream != nil && c.mover.Move()
	if both && c != other {
		other.mover.Move()
	}
	return moved
}

// sleep waits, with the thread, until a stream is ready, at most for limit, and moves what there is. The mutex is held, and let
// go meanwhile.
func (e *Engine) sleep(limit time.Duration) {
	e.few.Clear()
	for _, c := range e.conns {
		if !c.Ended {
			e.few.Add(c.Stream.Descriptor(), c.rank, c.Stream.Arm(c.mover.HasOutput()))
		}
	}
	e.mu.Unlock()
	ready := e.few.Wait(limit)
	e.mu.Lock()
	for _, rank := range ready {
		if c := e.Conn(rank); c.Stream != nil {
			c.mover.Move()
		}
	}
}
