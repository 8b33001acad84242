package wait

import (
	"testing"
	"time"
)

const (
	look       = time.Microsecond      // how long a look takes
	quickYield = 300 * time.Nanosecond // a yield that finds nobody
	turns      = 5 * time.Microsecond  // one that lets a thread run that waits, too
	slice      = 3 * time.Millisecond  // one that lets a thread run that computes
	slept      = time.Millisecond      // a sleep in which nothing comes
)

// A rank waits for something that never comes, in a simulation.
type rank struct {
	Detector
	now    time.Duration
	spent  map[Action]time.Duration
	counts map[Action]int
}

// wait looks for so long. A yield takes the time yield.
func (r *rank) wait(long, yield time.Duration) {
	r.spent, r.counts = make(map[Action]time.Duration), make(map[Action]int)
	began := r.now
	for since := r.now; r.now-began < long; {
		before, action := r.now, r.Next(r.now, r.now-since)
		r.now += look
		switch action {
		case Yield:
			r.now += yield
			r.Yielded(r.now, yield)
		case Spin:
		case Sleep:
			r.now += slept
			since = r.now
		}
		r.counts[action]++
		r.spent[action] += r.now - before
	}
}

func TestIdleProcessor(t *testing.T) {
	r := &rank{now: time.Hour}
	r.wait(time.Second, quickYield)
	if r.IsShared() || r.counts[Sleep] > 0 || r.counts[Yield] < 10_000 || r.spent[Yield] > 150*time.Millisecond {
		t.Errorf("it yields %d times, %v in a second, and sleeps %d times", r.counts[Yield], r.spent[Yield], r.counts[Sleep])
	}
}

// TestShortWait: who waits for less than probeTime does not yield.
func TestShortWait(t *testing.T) {
	for now := time.Duration(0); now < time.Second; now += probeTime {
		if got := new(Detector).Next(now, probeTime-1); got != Spin {
			t.Fatalf("at %v: %v", now, got)
		}
	}
}

func TestKnownToBeShared(t *testing.T) {
	r := &rank{Detector: Detector{Shared: true}}
	r.wait(time.Millisecond, quickYield)
	if !r.IsShared() || r.counts[Spin] > 0 || r.counts[Sleep] > 0 {
		t.Errorf("it spins %d times, and sleeps %d times", r.counts[Spin], r.counts[Sleep])
	}
}

// TestOthersWait: as soon as a yield shows that others wait, too, the rank yields each time, until they have gone.
func TestOthersWait(t *testing.T) {
	r := new(rank)
	r.wait(probeTime, turns)
	r.wait(10*time.Millisecond, turns)
	if !r.IsShared() || r.counts[Spin] > int(probeTime/look) || r.counts[Sleep] > 0 {
		t.Errorf("it spins %d times, and sleeps %d times", r.counts[Spin], r.counts[Sleep])
	}
	r.wait(quickYields*(look+quickYield), quickYield)
	if r.IsShared() {
		t.Errorf("they have gone, and it still yields each time")
	}
}

// TestSomebodyComputes: a rank gives a small part of its time to somebody who computes, however long a time slice is, sleeps for the rest,
// and has the processor for its own again soon after that somebody has gone.
func TestSomebodyComputes(t *testing.T) {
	for slice, most := range map[time.Duration]time.Duration{ // of 10 s
		sliceTime:              800 * time.Millisecond,
		slice:                  800 * time.Millisecond,
		100 * time.Millisecond: 1200 * time.Millisecond,
		300 * time.Millisecond: 3 * time.Second,
	} {
		r := new(rank)
		r.wait(10*time.Second, slice)
		if given := r.spent[Yield]; !r.IsShared() || given > most || r.counts[Sleep] == 0 {
			t.Errorf("slices of %v: it gives %v of 10s, and sleeps %d times", slice, given, r.counts[Sleep])
		}
		r.wait(longestSleeps+quickYields*(look+quickYield), quickYield)
		r.wait(time.Second, quickYield)
		if r.IsShared() || r.counts[Sleep] > 0 {
			t.Errorf("slices of %v: it has gone, and the rank sleeps %d times", slice, r.counts[Sleep])
		}
	}
}

// TestMessagesThatComeSoon: beside somebody who computes, a rank does not sleep for messages that come within spinBeforeSleep.
func TestMessagesThatComeSoon(t *testing.T) {
	d := new(Detector)
	d.Yielded(time.Second, slice)
	for waited := range spinBeforeSleep {
		if got := d.Next(time.Second+waited, waited); got != Spin {
			t.Fatalf("after %v: %v", waited, got)
		}
	}
	if got := d.Next(time.Second+spinBeforeSleep, spinBeforeSleep); got != Sleep {
		t.Errorf("after %v: %v", spinBeforeSleep, got)
	}
}

// TestVeryLongSlice: a rank that has been away for long soon looks whether it is still so.
func TestVeryLongSlice(t *testing.T) {
	d := new(Detector)
	d.Yielded(time.Minute, time.Minute)
	if got := d.Next(time.Minute+longestSleeps, time.Second); got != Yield {
		t.Errorf("after %v: %v", longestSleeps, got)
	}
}

// TestSomebodyComputesOnSharedProcessor: where others are known to need the processor, a rank never looks without a yield or a sleep.
func TestSomebodyComputesOnSharedProcessor(t *testing.T) {
	r := &rank{Detector: Detector{Shared: true}}
	r.wait(10*time.Second, slice)
	if r.counts[Spin] > 0 || r.spent[Yield] > time.Second || r.counts[Sleep] < 5000 {
		t.Errorf("it spins %d times, yields for %v, and sleeps %d times", r.counts[Spin], r.spent[Yield], r.counts[Sleep])
	}
}
