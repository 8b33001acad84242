//go:build schedule && linux

package shm

import (
	"math"
	"testing"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// The scheduler finds errors: with one order of accesses weakened, or one part of a protocol left out, runs fail soon.

// A weakening makes accesses of a kind to a place another kind of access.
type weakening struct {
	name     string
	models   []schedule.Model
	scenario string
	place    place
	from, to schedule.Access
	corrupt  func(t *Team) // instead of from and to: what to break before every call
	bound    int           // on unusual choices, for the scenario of which all orders are run
	forgets  bool          // instead of from and to: leave out histories
}

// mostOrders is how many orders may have to be tried to find one that fails.
const mostOrders = 30_000

// A place is what some bytes of the memory are used for.
type place int

const (
	anywhere place = iota
	sleepers
	clocks
	exports
	doorbells
	awaits
	recordTags
	llBytes
	ringBytes
	headerBytes
)

var (
	onTSO  = []schedule.Model{schedule.TSO}
	onWeak = []schedule.Model{schedule.Weak}
)

var weakenings = []weakening{
	{name: "a clock is ahead of what has been stored before it", models: models, scenario: "calls", place: clocks, from: schedule.StoreRelease, to: schedule.StoreAny},
	{name: "what is read after a clock is older", models: onWeak, scenario: "calls", place: clocks, from: schedule.LoadAcquire, to: schedule.LoadPlain},
	{name: "the flag of an LL message is ahead of its data", models: models, scenario: "calls", place: llBytes, from: schedule.StoreRelease, to: schedule.StoreAny},
	{name: "the data of an LL message is older than its flag", models: onWeak, scenario: "calls", place: llBytes, from: schedule.LoadAcquire, to: schedule.LoadPlain},
	{name: "non-temporal stores are late", models: onTSO, scenario: "calls", from: schedule.StoreFence, to: schedule.Nothing},
	{name: "an op record is published late", models: models, scenario: "calls", place: recordTags, from: schedule.StoreRelease, to: schedule.StoreAny},
	{name: "a parked rank does not count itself", models: models, scenario: "calls", place: sleepers, from: schedule.Update, to: schedule.Nothing},
	{name: "a parked rank does not say for whom it waits", models: models, scenario: "calls", place: awaits, from: schedule.StoreFull, to: schedule.Nothing},
	{name: "parked ranks are not woken", models: models, scenario: "calls", from: schedule.WakeUp, to: schedule.Nothing},
	{name: "an export is ahead of its handle", models: models, scenario: "buffers", place: exports, from: schedule.StoreFull, to: schedule.StoreAny},
	{name: "an export is checked before its data is read", models: onWeak, scenario: "abandoned buffers", from: schedule.FenceThread, to: schedule.Nothing},
	{name: "a doorbell is not counted", models: models, bound: 3, place: doorbells, from: schedule.Update, to: schedule.Nothing},
	{name: "a futex does not look at its word", models: models, bound: 3, from: schedule.SleepIf, to: schedule.Nothing},
	{name: "a record is ahead of its bytes", models: models, scenario: "streams", place: ringBytes, from: schedule.StoreRelease, to: schedule.StoreAny},
	{name: "a record's bytes are read too soon", models: onWeak, scenario: "streams", place: ringBytes, from: schedule.LoadAcquire, to: schedule.LoadPlain},
	{name: "the next record's word is late", models: models, scenario: "streams", place: ringBytes, from: schedule.StorePlain, to: schedule.StoreAny},
	{name: "a reader frees a record before it has read it", models: onTSO, scenario: "streams", place: headerBytes, from: schedule.StoreRelease, to: schedule.StoreAny},
	{name: "an end that sleeps makes no fence", models: onTSO, scenario: "streams", from: schedule.FenceAll, to: schedule.Nothing},
	{name: "a doorbell is not rung", models: models, scenario: "streams", from: schedule.WakeUp, to: schedule.Nothing},
	{name: "an entry is reused while others read it", models: models, scenario: "calls", corrupt: func(t *Team) {
		for i := range t.llState.inUse {
			t.llState.inUse[i].reuse.time = 0
		}
	}},
	{name: "a slot is reused while others read it", models: models, scenario: "calls", corrupt: func(t *Team) {
		for i := range t.slots.inUse {
			t.slots.inUse[i].reuse.time = 0
		}
	}},
	{name: "only the call under way is compared", models: models, scenario: "older differences", forgets: true},
	{name: "ranks get further ahead than records are kept", models: models, scenario: "older differences", corrupt: func(t *Team) { t.skewBoundUntil = math.MaxUint64 }},
}

func TestWeakenedOrdersAreFound(t *testing.T) {
	for _, k := range weakenings {
		for _, model := range k.models {
			t.Run(k.name+"/"+model.String(), func(t *testing.T) {
				w := newWorld(t, model)
				w.beforeCall, w.forgetful = k.corrupt, k.forgets
				if k.corrupt == nil && !k.forgets {
					w.m.Weaken = func(a schedule.Access, at int) schedule.Access {
						if a == k.from && (k.place == anywhere || w.place(at) == k.place) {
							return k.to
						}
						return a
					}
				}
				if k.bound > 0 {
					n, _, err := w.all(k.bound, func(w *world) { w.sleeper() })
					if err == nil {
						t.Fatalf("not found by all %d orders", n)
					}
					t.Logf("found by order %d of all: %v", n, err)
					return
				}
				for seed := uint64(1); seed <= mostOrders; seed++ {
					if err := w.run(scenarioOf(k.scenario), seed); err != nil {
						t.Logf("found by order %d: %v", seed, err)
						return
					}
				}
				t.Errorf("not found by %d orders", mostOrders)
			})
		}
	}
}

func scenarioOf(name string) scenario {
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	panic("no scenario " + name)
}

// place is what is at a byte of the memory.
func (w *world) place(at int) place {
	switch {
	case w.streaming && at < segment.PageSize:
		return headerBytes
	case w.streaming:
		return ringBytes
	}
	controls := int(unsafe.Sizeof(header{}))
	switch mail := llAt(w.n); {
	case at < controls:
		return sleepers
	case at >= mail && at < slotsAt(w.n):
		return llBytes
	case at >= mail:
		return anywhere
	}
	var c control
	switch off := uintptr(at-controls) % unsafe.Sizeof(c); {
	case off == unsafe.Offsetof(c.clock):
		return clocks
	case off >= unsafe.Offsetof(c.export) && off < unsafe.Offsetof(c.export)+unsafe.Sizeof(c.export):
		return exports
	case off == unsafe.Offsetof(c.flag), off >= unsafe.Offsetof(c.records) && off < unsafe.Offsetof(c.wait):
		return recordTags
	case off == unsafe.Offsetof(c.wait)+unsafe.Offsetof(c.wait.Doorbell):
		return doorbells
	case off == unsafe.Offsetof(c.wait)+unsafe.Offsetof(c.wait.Awaits):
		return awaits
	}
	return anywhere
}
