// Package cpu has what Go lacks for memory that processes share, and for operations that take less time than reading the clock.
package cpu

import "time"

// Reached reports whether v has reached least. v counts up, and continues from 0 after the largest number, so it has if it is less than
// half of all numbers ahead of least.
func Reached(v, least uint64) bool { return int64(v-least) >= 0 }

// A Stamp is a point in time, in ticks of the processor.
type Stamp uint64

// Now returns the current time. It costs less than time.Now.
func Now() Stamp { return Stamp(ticks()) }

// since is the start of the program, in both kinds of time.
var since, sinceStamp = time.Now(), Now()

// Time converts s.
func (s Stamp) Time() time.Time {
	now, stamp := time.Now(), Now()
	passed := float64(now.Sub(since)) / float64(max(stamp-sinceStamp, 1)) // a tick, in nanoseconds
	return since.Add(time.Duration(float64(s-sinceStamp) * passed))
}
