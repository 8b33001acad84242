// Package cpu has what Go lacks for memory that processes share, and for operations that are over in less time than it takes
// to look at the clock.
package cpu

import "time"

// Reached reports whether v, which counts on and after the largest number from 0, has reached least: it is no more than half of all
// numbers further.
func Reached(v, least uint64) bool { return int64(v-least) >= 0 }

// A Stamp is a point in time that costs little to take.
type Stamp uint64

// Now is the time.
func Now() Stamp { return Stamp(ticks()) }

// since is when the program began, in both kinds of time.
var since, sinceStamp = time.Now(), Now()

// Time is s as the clock has it.
func (s Stamp) Time() time.Time {
	now, stamp := time.Now(), Now()
	passed := float64(now.Sub(since)) / float64(max(stamp-sinceStamp, 1)) // a tick, in nanoseconds
	return since.Add(time.Duration(float64(s-sinceStamp) * passed))
}
