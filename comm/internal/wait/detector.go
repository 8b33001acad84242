package wait

import "time"

// A yield shows whether others want the processor. It returns at once if nobody waits for it. If it takes as long as two switches
// between threads, somebody did wait, and has let go of it soon, as ranks do that wait, too. If it takes a time slice, somebody
// computes. Then it is better to sleep than to yield: a kernel soon runs a thread that has slept, but may let a thread that has
// yielded wait until all others have had their slices.

// An Action is what a rank does that has looked and found nothing.
type Action int

// What a rank can do.
const (
	Spin  Action = iota // look again
	Yield               // let others have the processor, and call Yielded
	Sleep               // until something comes
)

const (
	// switchTime is between the time of a yield if nobody waits for the processor, less than 1 µs, and the time of two switches.
	switchTime = 2 * time.Microsecond
	// sliceTime is less than a time slice of Linux, which is 0.7 ms or more.
	sliceTime = 500 * time.Microsecond
	// probeTime is how often a rank yields that believes it has its processor for itself. It is much longer than such a yield takes.
	probeTime = 10 * time.Microsecond
	// quickYields is the number of yields in a row that find nobody, after which a rank believes that.
	quickYields = 64
	// sleepFactor: after a yield of a time slice, the rank sleeps, instead of yielding, for so many times the time that the yield took.
	// So such yields cost it little, whatever a time slice is. The rank still finds out when those who compute have gone.
	sleepFactor = 16
	// longestSleeps is the most time for which it does so.
	longestSleeps = time.Second
	// spinBeforeSleep is how long a rank looks before it sleeps. It is longer than a peer takes to wake up and answer: beside somebody who
	// computes, a rank that sleeps too early pays for a wake-up with each message. If Shared is set, it sleeps at once: its peers
	// probably need the processor.
	spinBeforeSleep = 200 * time.Microsecond
)

// A Detector finds out whether others want the processor on which a rank polls, and says what the rank should do between two looks. The
// others may be anybody: ranks of this or another job, other containers, the system. It is pure: the caller says what time it is. It
// remembers what the yields of the rank have shown. The zero value takes the processor to be the rank's own. Only one goroutine at a time
// may use it.
type Detector struct {
	// Shared is set if others are known to need the processor. The rank then yields though nobody waits at the moment.
	Shared bool

	contended   bool          // somebody has waited for the processor lately
	quick       int           // yields in a row that have found nobody
	yielded     time.Duration // when the last one ended
	sleepsUntil time.Duration // until then the rank sleeps instead of yielding
}

// Next returns what to do at the time now, from any fixed time before the first call. The rank has waited for the time waited and found
// nothing.
func (d *Detector) Next(now, waited time.Duration) Action {
	switch {
	case now < d.sleepsUntil && waited < spinBeforeSleep && !d.Shared:
		return Spin
	case now < d.sleepsUntil:
		return Sleep
	case d.Shared, d.contended, waited >= probeTime && now-d.yielded >= probeTime:
		return Yield
	}
	return Spin
}

// Yielded says that a yield took the time took, and ended now.
func (d *Detector) Yielded(now, took time.Duration) {
	d.yielded = now
	if took < switchTime {
		if d.quick++; d.quick >= quickYields {
			d.contended = false
		}
		return
	}
	d.quick, d.contended = 0, true
	if took >= sliceTime {
		d.sleepsUntil = now + min(sleepFactor*took, longestSleeps)
	}
}

// IsShared reports whether others are known to need the processor, or have waited for it lately.
func (d *Detector) IsShared() bool { return d.Shared || d.contended }
