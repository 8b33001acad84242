package guard

import "time"

// A phase is a part of the life of a gang, as its guard sees it. Phases only move to the right:
//
//	running ── stop ──▶ stopping ── all ended ──▶ leaving ── time over ──▶ asked ── time over ──▶ urged ── time over ──▶ killing
//	   │                   └────────────── time over, kill ───────────────────────────────────────▶│
//	   └── all ended ──▶ leaving; kill ──▶ urged; and wherever it is, if the agent is lost ──▶ killing
//
// Whenever nothing is left, that is the end. A process may outlive its worker for a moment, to remove what the worker can no longer remove:
// Python's resource_tracker and torch_shm_manager unlink shared memory when they have read an end of file from the worker and all its
// children, such as data loaders. So what is left of a worker has three seconds: torch_shm_manager waits for two of them. If the workers have been
// killed, it has half a second, and if nobody is left to wait for it, it has none.
type phase int

const (
	running  phase = iota
	stopping       // the workers have been signalled and the grace period runs
	leaving        // no worker is left; what they have left may end by itself
	asked          // what is left in their session has got SIGTERM
	urged          // what has left the session, too
	killing        // every descendant gets SIGKILL until none is left
)

// lasts is how long the phases last in which processes are left without a worker. The other phases have no limits here.
var lasts = map[phase]time.Duration{leaving: 200 * time.Millisecond, asked: LeftTimeout - 700*time.Millisecond, urged: 500 * time.Millisecond}

// LeftTimeout is how long processes may outlive their workers.
const LeftTimeout = 3 * time.Second

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
	case allEnded:
		return max(p, leaving)
	case killAsked:
	case agentLost:
		return killing
	case timeOver:
		if p >= leaving {
			return min(p+1, killing)
		}
	}
	return max(p, urged)
}
