package shm

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Ranks wait in three ways, one after the other. They look, for as long as it takes to be told that a rank which is doing
// the same is a little late. Then they let other goroutines and processes run between looks. Then they sleep.
//
// A rank that is about to sleep says so, and looks once more. Between what it says and what it sees there must be a
// fence, and so must be between the advance of a clock and the look whether anybody sleeps; or both may miss each other.
// Of the two only the first is rare, so that one pays for both: it fences all processors that run ranks (membarrier(2),
// the global expedited form). Where that is not to be had, every advance is fenced.

const (
	yieldTime  = time.Millisecond // how long ranks let others run before they sleep
	manyLooks  = 1000
	fewLooks   = 20
	looksAtAll = 4
)

// Processors is what ranks have to run on.
type Processors struct {
	Ranks  int  // of all groups, that share the processors with each other
	Shared bool // whether some of them are goroutines of one process
}

// patience is how long ranks look, and what they do in between.
type patience struct {
	looks   int
	crowded bool // there are more ranks than processors
	shared  bool
}

func (p Processors) patience(n int) patience {
	ranks, cpus := max(p.Ranks, n), processors()
	if p.Shared {
		cpus = min(cpus, runtime.GOMAXPROCS(0))
	}
	w := patience{looks: manyLooks, crowded: ranks > cpus, shared: p.Shared}
	if w.crowded {
		w.looks = fewLooks
	}
	return w
}

// CanFence says whether ranks of this process can fence others and be fenced.
func CanFence() bool { return registered() }

// patiently goes on waiting for r's clock.
func (t *Team) patiently(r int, target uint64) (uint64, error) {
	t.Waited = true
	clock := &t.ranks[r].clock
	begun := time.Now()
	for i := 0; ; i++ {
		if err := t.match(r); err != nil {
			return 0, err
		}
		if t.crowded && !t.shared {
			yield()
		}
		if t.shared || !t.crowded || i%8 == 7 {
			runtime.Gosched()
		}
		if now := cpu.Await(clock, target, looksAtAll); now >= target {
			return now, nil
		}
		if time.Since(begun) < yieldTime {
			continue
		}
		if err := t.lasting(r, Doze{t: t, rank: r, until: target, roused: new(atomic.Bool)}); err != nil {
			return 0, err
		}
		begun = time.Now()
	}
}

// A Doze is a wait that lasts.
type Doze struct {
	t      *Team
	rank   int
	until  uint64
	roused *atomic.Bool
}

// Over says whether what is waited for has happened. It may be called by any goroutine until the wait has ended.
func (d Doze) Over() bool { return atomic.LoadUint64(&d.t.ranks[d.rank].clock) >= d.until }

// Sleep returns when it is over, or Rouse has been called.
func (d Doze) Sleep() {
	me := d.t.ranks[d.t.me]
	for !d.Over() && !d.roused.Load() {
		bell := atomic.LoadUint32(&me.bell)
		atomic.StoreUint64(&me.wakeAt, d.until)
		atomic.StoreUint32(&me.awaits, uint32(d.rank)+1)
		atomic.AddUint32(&d.t.head.sleepers, 1)
		if !d.t.fenced {
			fenceAll()
		}
		if !d.Over() && !d.roused.Load() {
			sleepOn(&me.bell, bell)
		}
		atomic.StoreUint32(&me.awaits, 0)
		atomic.AddUint32(&d.t.head.sleepers, ^uint32(0))
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
		if atomic.LoadUint32(&other.awaits) == uint32(t.me)+1 && atomic.LoadUint64(&other.wakeAt) <= now {
			t.ring(r)
		}
	}
}

func (t *Team) ring(r int) {
	bell := &t.ranks[r].bell
	atomic.AddUint32(bell, 1)
	wake(bell)
}
