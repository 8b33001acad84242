package shm

import (
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/wait"
)

// at is the time at which a rank has done step of operation op. It has begun the operation at step 0. After the largest number time
// continues from 0; see [cpu.Reached].
func at(op uint64, step int) uint64 { return op<<stepBits | uint64(step) }

const stepBits = 24

// time is the time at which a rank has done step of the method under way.
func (t *Team) time(step int) uint64 { return at(t.op, t.base+step) }

// done advances this rank's clock: it has done step.
func (t *Team) done(step int) {
	t.publish()
	now := t.time(step)
	cpu.StoreRelease(&t.ranks[t.me].clock, now)
	if cpu.Load32(&t.header.sleepers) != 0 {
		t.waiter.WakeAll(now)
	}
}

// arrive advances this rank's clock to the beginning of the operation, unless it is further already.
func (t *Team) arrive() {
	t.publish()
	if now := at(t.op, 0); !cpu.Reached(cpu.Load(&t.ranks[t.me].clock), now) {
		cpu.StoreRelease(&t.ranks[t.me].clock, now)
		t.waiter.WakeAll(now)
	}
}

// wait waits until r has done step.
func (t *Team) wait(r, step int) error {
	if err := t.waitClock(r, t.time(step)); err != nil {
		return err
	}
	return t.compareArrived(r)
}

// waitClock waits until r's clock says time.
func (t *Team) waitClock(r int, time uint64) error {
	if cpu.Reached(t.seen[r], time) {
		return nil
	}
	now := cpu.Await(&t.ranks[r].clock, time, t.waiter.Spins)
	if !cpu.Reached(now, time) && t.waiter.SharesCPU() {
		t.arrive()
		now = t.waiter.Yield(r, time)
	}
	if !cpu.Reached(now, time) {
		var err error
		if now, err = t.waitLong(r, time); err != nil {
			return err
		}
	}
	t.seen[r] = now
	return nil
}

// Alert ends long waits of this rank, now and later, by what the group's communicator says. Any goroutine may call it.
func (t *Team) Alert() { t.waiter.AlertNow() }

// waitLong waits for r's clock after the first spins.
func (t *Team) waitLong(r int, target uint64) (uint64, error) {
	t.Waited = true
	t.arrive()
	begun := wait.Now()
	for i := 0; ; i++ {
		if now := t.waiter.Spin(r, target); cpu.Reached(now, target) {
			return now, nil
		}
		if err := t.compare(r); err != nil {
			return 0, err
		}
		waited := wait.Now().Sub(begun)
		if !t.waiter.IsDue(waited) {
			t.waiter.Pause(i, r, target, waited)
			continue
		}
		if err := t.onLongWait(r, t.waiter.Long(r, target)); err != nil {
			return 0, err
		}
		begun = wait.Now()
	}
}

// A reuse says when memory can be reused: when the clock of its reader has reached time.
type reuse struct {
	reader int // or everybody
	time   uint64
}

// awaitReaders waits until memory can be reused.
func (t *Team) awaitReaders(u *reuse) error {
	for r, seen := range t.seen {
		if t.isReader(r, u) && !cpu.Reached(seen, u.time) {
			if err := t.waitClock(r, u.time); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetOldClocks removes times that are so old that they would soon seem to be in the future: what other ranks' clocks have reached,
// and when slots and entries can be reused. The skew between ranks is bounded, so no other time can be as old.
func (t *Team) forgetOldClocks() {
	for r, other := range t.ranks {
		t.seen[r] = cpu.Load(&other.clock)
	}
	for t.slots.oldest < t.slots.newest && t.isReusable(&t.slots.inUse[t.slots.oldest%mostSlotsInUse].reuse) {
		t.slots.oldest++
	}
	for t.llState.oldest < t.llState.newest && t.isReusable(&t.llState.inUse[t.llState.oldest%llEntries].reuse) {
		t.llState.oldest++
	}
}

// isReusable reports whether memory can be reused, as far as this rank has seen.
func (t *Team) isReusable(u *reuse) bool {
	for r, seen := range t.seen {
		if t.isReader(r, u) && !cpu.Reached(seen, u.time) {
			return false
		}
	}
	return true
}

// isReader reports whether r is another rank that reads the memory.
func (t *Team) isReader(r int, u *reuse) bool {
	return r != t.me && (u.reader == r || u.reader == everybody)
}
