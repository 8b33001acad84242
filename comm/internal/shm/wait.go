package shm

import (
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Ranks wait in three ways, one after the other. They look, for as long as it takes to be told that a rank which is doing
// the same is a little late. Then they let other goroutines and processes run between looks. Then they sleep: soon, where
// there are more ranks than processors, for a kernel may let who yields wait for long.
//
// A rank that is about to sleep says so, and looks once more. Between the advance of a clock and the look whether anybody
// sleeps there is no fence, which would cost every operation more than all else: the two may pass each other, and a sleeper
// be missed. So the first sleep is short. After it, whoever advances a clock has known of the sleeper for long.

const (
	yieldTime  = time.Millisecond       // how long ranks let others run before they sleep
	alertTime  = 20 * time.Millisecond  // how long ranks sleep before they ask what has become of the other
	crowdAlert = 5 * alertTime          // the same, where there are more ranks than processors
	firstNap   = 500 * time.Microsecond // how long at first
	manyLooks  = 1000
	looksAtAll = 4
)

// Processors is what the ranks of a machine have to run on.
type Processors struct {
	CPUs   int
	Ranks  int  // of all groups
	Shared bool // whether some of them are goroutines of one process
}

// Crowded says whether there are more ranks than processors.
func (p Processors) Crowded() bool { return p.Ranks > p.CPUs }

// patience is how long ranks look, and what they do in between.
type patience struct {
	looks   int
	crowded bool // there are more ranks than processors
	shared  bool
	alert   time.Duration
}

func (p Processors) patience() patience {
	w := patience{looks: manyLooks, crowded: p.Crowded(), shared: p.Shared, alert: alertTime}
	if w.crowded {
		w.looks, w.alert = 1, crowdAlert
	}
	return w
}

// mostPerProcessor is how many ranks a team may have for every processor: with more, ranks that wait for each other in turn
// do better with messages, which the kernel keeps for them.
const mostPerProcessor = 32

// Serve says whether they are enough for a team of n to be of use.
func (p Processors) Serve(n int) bool { return n <= mostPerProcessor*p.CPUs }

// patiently goes on waiting for r's clock.
func (t *Team) patiently(r int, target uint64) (uint64, error) {
	t.Waited = true
	t.come()
	begun := timeNow()
	for i := 0; ; i++ {
		if now := cpu.Await(&t.ranks[r].clock, target, t.glances(r)); cpu.Reached(now, target) {
			return now, nil
		}
		if err := t.compare(r); err != nil {
			return 0, err
		}
		switch waited := timeNow().Sub(begun); {
		case waited >= t.alert:
			if err := t.lasting(r, Doze{t: t, rank: r, until: target, roused: new(atomic.Bool)}); err != nil {
				return 0, err
			}
			begun = timeNow()
		case t.isCrowd() && i >= yields, waited >= yieldTime:
			t.nap(r, target, t.alert-waited, &t.never)
		case t.isCrowd():
			t.giveTurn()
		default:
			letOthersRun()
		}
	}
}

// nap sleeps until r's clock says target, stop is set and this rank rung for, or limit has passed.
func (t *Team) nap(r int, target uint64, limit time.Duration, stop *atomic.Bool) {
	me, clock := t.ranks[t.me], &t.ranks[r].clock
	cpu.Store(&me.wakeAt, target)
	cpu.Store32(&me.awaits, uint32(r)+1)
	cpu.Add32(&t.head.sleepers, 1)
	for begun := timeNow(); ; {
		bell := cpu.Load32(&me.bell)
		slept := timeNow().Sub(begun)
		if cpu.Reached(cpu.Load(clock), target) || stop.Load() || slept >= limit {
			break
		}
		pause := limit - slept
		if slept < firstNap { // also if a signal has ended the first sleep at once
			pause = min(pause, firstNap-slept)
		}
		sleepOn(&me.bell, bell, pause)
	}
	cpu.Store32(&me.awaits, 0)
	cpu.Add32(&t.head.sleepers, ^uint32(0))
}

// A Doze is a wait that lasts.
type Doze struct {
	t      *Team
	rank   int
	until  uint64
	roused *atomic.Bool
}

// Over says whether what is waited for has happened. It may be called by any goroutine until the wait has ended.
func (d Doze) Over() bool { return cpu.Reached(cpu.Load(&d.t.ranks[d.rank].clock), d.until) }

// Sleep returns when it is over, or Rouse has been called.
func (d Doze) Sleep() {
	for !d.Over() && !d.roused.Load() {
		d.t.nap(d.rank, d.until, time.Hour, d.roused)
	}
}

// Rouse ends Sleep.
func (d Doze) Rouse() {
	d.roused.Store(true)
	d.t.ring(d.t.me)
}

// wakeAll wakes the ranks that sleep until this one's clock says now.
func (t *Team) wakeAll(now uint64) {
	for r, other := range t.ranks {
		if cpu.Load32(&other.awaits) == uint32(t.me)+1 && cpu.Reached(now, cpu.Load(&other.wakeAt)) {
			t.ring(r)
		}
	}
}

func (t *Team) ring(r int) {
	bell := &t.ranks[r].bell
	cpu.Add32(bell, 1)
	wake(bell)
}
