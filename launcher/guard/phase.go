package guard

// A phase is a part of the life of a gang, as its guard sees it. Phases only move to the right:
//
//	running ── stop ──▶ stopping ── grace over, kill, agent lost, all ended ──▶ killing
//	   └─────────────────────── kill, agent lost, all ended ───────────────────────┘
type phase int

const (
	running  phase = iota
	stopping       // the workers have been signalled and the grace period runs
	killing        // every descendant gets SIGKILL until none is left
)

type trigger int

const (
	stopAsked trigger = iota
	killAsked
	agentLost
	graceOver
	allEnded // the workers and, in stopping, all that was signalled; what has left the session may still run
)

// next makes all decisions about stopping.
func (p phase) next(h trigger) phase {
	if h == stopAsked {
		return max(p, stopping)
	}
	return killing
}
