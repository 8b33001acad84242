package agent

import "time"

const (
	firstBackoff = 100 * time.Millisecond
	steadyWork   = time.Minute
)

// A backoff counts restarts in a row, each after less than [steadyWork]. It has no clock.
type backoff int

// after returns the backoff for the workers that follow workers that ran for the time ran. restart says whether those failed: a
// new round with other nodes is not a restart.
func (b backoff) after(ran time.Duration, restart bool) backoff {
	if ran >= steadyWork {
		b = 0
	}
	if restart {
		b++
	}
	return b
}

// delay returns how long to wait before the workers start: not at all after the first failure, then twice as long each
// time, up to longest.
func (b backoff) delay(longest time.Duration) time.Duration {
	if b < 2 {
		return 0
	}
	return min(firstBackoff<<min(b-2, 30), longest) // 30 doublings are more than three years
}
