package core

import (
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/machine"
)

// exitTimeout is how long a process whose connections have closed may take to be gone: the kernel closes them in the
// course of its exit, microseconds before the end.
const exitTimeout = time.Second

// liveness is what can be found out about the process of rank, if it is another one: whether it has ended.
func (w *World) liveness(rank int) diagnosis.Liveness {
	pid := w.Neighbour(rank)
	if pid == 0 {
		return diagnosis.Unknown
	}
	switch ended, known := machine.AwaitExit(pid, exitTimeout); {
	case !known:
		return diagnosis.Unknown
	case ended:
		return diagnosis.Dead
	}
	return diagnosis.Alive
}

// State says what the process of rank does, if it is another one that can be looked at.
func (w *World) State(rank int) string {
	if pid := w.Neighbour(rank); pid > 0 {
		return machine.ProcessState(pid)
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
