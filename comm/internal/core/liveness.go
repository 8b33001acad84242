package core

import (
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// exitTimeout is how long a process whose connections have closed may take to be gone: the kernel closes them in the
// course of its exit, microseconds before the end.
const exitTimeout = time.Second

// died says whether the process of rank has ended, if it is another one that can be looked at.
func (w *World) died(rank int) endpoint.Fate {
	if pid := w.Neighbour(rank); pid > 0 {
		return awaitExit(pid, exitTimeout)
	}
	return endpoint.Unknown
}

// State says what the process of rank does, if it is another one that can be looked at.
func (w *World) State(rank int) string {
	if pid := w.Neighbour(rank); pid > 0 {
		return processState(pid)
	}
	return ""
}

// Neighbour is the process of rank, or 0 if it is this one, or its number means nothing here.
func (w *World) Neighbour(rank int) int {
	me, other := w.Peers[w.Rank], w.Peers[rank]
	if !me.SameProcesses(other.Place) || other.PID == me.PID {
		return 0
	}
	return other.PID
}
