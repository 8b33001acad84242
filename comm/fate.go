package comm

import (
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// exitTimeout is how long a process whose connections have closed may take to be gone: the kernel closes them in the
// course of its exit, microseconds before the end.
const exitTimeout = time.Second

// died tells whether the process of rank has ended, if it is one of this machine.
func (w *world) died(rank int) endpoint.Fate {
	me, other := w.info[w.rank], w.info[rank]
	if other.Host != me.Host || other.PID == me.PID || other.PID <= 0 {
		return endpoint.Unknown
	}
	return awaitExit(other.PID, exitTimeout)
}
