// Package wait is how ranks wait: they spin, then yield, then park. A [Detector] says whether others want the processor meanwhile.
// [Processors] says whether there are enough of them for all ranks. A [Waiter] waits for a rank that shares memory with this one: for its
// clock, which is in shared memory and which only that rank advances.
package wait

import (
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A rank first spins: another rank in the same call may be only a little late. Then it yields between polls, so that other goroutines and
// processes run. Then it parks: it sleeps until the other rank wakes it. If there are more ranks than processors it parks early, because
// a kernel may let a thread that yields wait for long.
//
// A rank that is about to park says so in shared memory, and then reads the clock once more. A rank that has advanced its clock checks
// whether any rank is parked. There is no fence between the two, because it would cost every operation more than all else. So a wake-up
// may be missed. For that reason the first sleep is short: by its end the other rank sees that this one is parked.
const (
	yieldTime           = time.Millisecond       // how long ranks yield before they park
	alertTime           = 20 * time.Millisecond  // how long ranks park before they find out whether the other one is still there
	oversubscribedAlert = 5 * alertTime          // the same, if there are more ranks than processors
	cpuLookTime         = 50 * time.Microsecond  // after which a rank finds out whether the other one is on its processor
	FirstPark           = 500 * time.Microsecond // the longest first sleep
	manySpins           = 1000
	spinsPerYield       = 4
)

// A State is what a rank that waits shares with the others. Only the rank writes there, except for Doorbell.
type State struct {
	Doorbell uint32 // a futex; other ranks add one to wake this rank
	Awaits   uint32 // the rank for which it is parked, from 1; 0 if it is not parked
	WakeAt   uint64 // the time on that rank's clock at which it is to be woken
	CPU      uint32 // the processor on which it runs, from 1; 0: not known
	_        [11]uint32
}

// A Waiter waits for one rank at a time. Only one goroutine at a time may use it.
type Waiter struct {
	Spins          int           // polls before anything else
	Alert          time.Duration // after this time the caller finds out whether the other rank is still there
	Oversubscribed bool          // there are more ranks than processors
	SameProcess    bool          // some ranks are goroutines of one process

	me       int
	clocks   []*uint64 // by rank, in shared memory
	states   []*State  // by rank, in shared memory
	sleepers *uint32   // how many ranks are parked, in shared memory
	alerted  atomic.Bool

	cpu    uint32   // the processor of this rank, from 1; 0: not known
	yields int      // how often this rank has yielded its processor
	cpus   []uint32 // scratch: the processors of all ranks
}

// Init makes w the waiter of rank me. The clocks, states and the number of parked ranks are in shared memory.
func (w *Waiter) Init(p Processors, me int, clocks []*uint64, states []*State, sleepers *uint32) {
	w.Spins, w.Alert, w.Oversubscribed, w.SameProcess = manySpins, alertTime, p.Oversubscribed(), p.SameProcess
	if w.Oversubscribed {
		w.Spins, w.Alert = 1, oversubscribedAlert
	}
	w.me, w.clocks, w.states, w.sleepers = me, clocks, states, sleepers
	w.cpus = make([]uint32, 0, len(clocks))
}

// Spin polls r's clock a few times, until it has reached target, and returns what it says.
func (w *Waiter) Spin(r int, target uint64) uint64 {
	return cpu.Await(w.clocks[r], target, w.spinsFor(r))
}

// Pause yields, or after a while parks. The caller has spun i times before, and r's clock has not reached target.
func (w *Waiter) Pause(i, r int, target uint64, waited time.Duration) {
	switch {
	case w.SharesCPU() && i >= yieldsBeforePark, waited >= yieldTime:
		w.Park(r, target, w.Alert-waited, &w.alerted)
	case w.SharesCPU(), waited >= cpuLookTime && w.isOnCPUOf(r):
		w.yieldCPU()
	default:
		yieldGoroutine()
	}
}

// IsDue reports whether the caller has waited for so long, or has been alerted, that it should find out whether the other rank is still there.
func (w *Waiter) IsDue(waited time.Duration) bool { return waited >= w.Alert || w.alerted.Load() }

// AlertNow makes every wait of this rank due, now and later. Any goroutine may call it.
func (w *Waiter) AlertNow() {
	w.alerted.Store(true)
	w.ring(w.me)
}

// Park sleeps until r's clock has reached target, until stop is set and this rank's doorbell rings, or until limit has passed.
func (w *Waiter) Park(r int, target uint64, limit time.Duration, stop *atomic.Bool) {
	me, clock := w.states[w.me], w.clocks[r]
	cpu.Store(&me.WakeAt, target)
	cpu.Store32(&me.Awaits, uint32(r)+1)
	cpu.Add32(w.sleepers, 1)
	for begun := Now(); ; {
		bell := cpu.Load32(&me.Doorbell)
		slept := Now().Sub(begun)
		if cpu.Reached(cpu.Load(clock), target) || stop.Load() || slept >= limit {
			break
		}
		pause := limit - slept
		if slept < FirstPark { // also if a signal has ended the first sleep at once
			pause = min(pause, FirstPark-slept)
		}
		sleepOn(&me.Doorbell, bell, pause)
	}
	cpu.Store32(&me.Awaits, 0)
	cpu.Add32(w.sleepers, ^uint32(0))
}

// WakeAll wakes the ranks that are parked until this one's clock reaches now.
func (w *Waiter) WakeAll(now uint64) {
	for r, other := range w.states {
		if cpu.Load32(&other.Awaits) == uint32(w.me)+1 && cpu.Reached(now, cpu.Load(&other.WakeAt)) {
			w.ring(r)
		}
	}
}

// ring rings r's doorbell.
func (w *Waiter) ring(r int) {
	bell := &w.states[r].Doorbell
	cpu.Add32(bell, 1)
	wake(bell)
}

// A LongWait is a wait for a rank that lasts so long that the caller should find out whether that rank is still there.
type LongWait struct {
	w      *Waiter
	rank   int
	target uint64
	woken  *atomic.Bool
}

// Long returns a long wait for r's clock to reach target.
func (w *Waiter) Long(r int, target uint64) LongWait {
	return LongWait{w: w, rank: r, target: target, woken: new(atomic.Bool)}
}

// Done reports whether the clock has reached its target. Any goroutine may call it until the wait has ended.
func (l LongWait) Done() bool { return cpu.Reached(cpu.Load(l.w.clocks[l.rank]), l.target) }

// Park returns when the wait is done, or Wake has been called.
func (l LongWait) Park() {
	for !l.Done() && !l.woken.Load() {
		l.w.Park(l.rank, l.target, time.Hour, l.woken)
	}
}

// Wake ends Park. Any goroutine may call it.
func (l LongWait) Wake() {
	l.woken.Store(true)
	l.w.ring(l.w.me)
}
