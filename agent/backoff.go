package agent

import "time"

const (
	firstBackoff = 100 * time.Millisecond
	steadyWork   = time.Minute
)

// A backoff is how many restarts there have been in a row, each after less than [steadyWork]. It has no clock.
type backoff int

// after is the backoff when workers that have run for so long are followed by others. restart says that they failed: a round that
// only has other nodes is no restart.
func (b backoff) after(ran time.Duration, restart bool) backoff {
	switch {
	case ran >= steadyWork && restart:
		return 1
	case ran >= steadyWork:
		return 0
	case restart:
		return b + 1
	default:
		return b
	}
}

// delay is how long the workers wait before they start: not at all after the first failure, then twice as long each time,
// up to longest.
func (b backoff) delay(longest time.Duration) time.Duration {
	if b < 2 {
		return 0
	}
	return min(firstBackoff<<min(b-2, 30), longest) // 30 doublings are more than three years
}
