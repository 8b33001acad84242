package guard

import "time"

// A phase is a part of the life of a unit, as its guard sees it. Phases only move to the right:
//
//	running ── stop ──▶ stopping ── all ended ──▶ leaving ── time over ──▶ askedSession ── time over ──▶ askedAll ── time over ──▶ killing
//
// Some steps skip phases: all ended, from running to leaving; time over, from stopping to askedAll; kill, from any to askedAll; agent lost, from
// any to killing. The unit's life ends in any phase as soon as no process is left.
//
// From leaving on, no worker of the unit lives. A process may outlive its worker for a moment, to remove what the
// worker can no longer remove: Python's resource_tracker and torch_shm_manager unlink shared memory when they have
// read an end of file from the worker and all its children, such as data loaders. So these processes have
// LeftTimeout: torch_shm_manager waits for two seconds of it. If the workers have been killed, they have half a
// second. If the agent is lost, they have no time.
type phase int

const (
	running      phase = iota
	stopping           // the workers have been signalled and the grace period runs
	leaving            // no worker is left; what they have left may end by itself
	askedSession       // what is left in their session has got SIGTERM
	askedAll           // every descendant has, also outside the session
	killing            // every descendant gets SIGKILL until none is left
)

// LeftTimeout is how long processes may outlive their workers.
const LeftTimeout = 3 * time.Second

// lasts is how long each of the phases lasts that make up LeftTimeout.
var lasts = map[phase]time.Duration{leaving: 200 * time.Millisecond, askedSession: LeftTimeout - 700*time.Millisecond, askedAll: 500 * time.Millisecond}

type trigger int

const (
	stopAsked trigger = iota
	killAsked
	agentLost
	timeOver
	allEnded // the workers and, in stopping, all that was signalled; what has left the session may still run
)

// next makes all decisions about stopping.
func (p phase) next(h trigger) phase {
	switch h {
	case stopAsked:
		return max(p, stopping)
	case killAsked:
		return max(p, askedAll)
	case agentLost:
		return killing
	case allEnded:
		return max(p, leaving)
	case timeOver:
	}
	if p < leaving {
		return askedAll
	}
	return min(p+1, killing)
}
