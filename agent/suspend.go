package agent

import (
	"fmt"
	"time"
)

// text says what an interrupt does, and what the next one would do.
func (a answer) text(grace time.Duration) string {
	name, whom := signalName(a.sig), plural(a.left, "worker", "workers")
	if a.left == 0 {
		whom = "what the workers have left"
	}
	switch {
	case a.left < 0 && a.kills:
		return name + ": ending at once"
	case a.left < 0:
		return name + ": ending; no worker runs here. Another signal ends this at once"
	case a.kills || grace == 0:
		return fmt.Sprintf("%s: killing %s", name, whom)
	default:
		return fmt.Sprintf("%s: stopping %s, and killing what has not ended in %v. Another signal kills at once", name, whom, grace)
	}
}

// suspend suspends the gang and then this process, and continues them in the other order. The time between does not count.
func (l *loop) suspend() {
	if l.machine.gang {
		l.gang.Suspend()
	}
	left := time.Until(l.barrierEnds)
	passed := l.Suspend()
	if l.machine.gang {
		l.gang.Resume(passed)
	}
	if l.barrier != nil {
		l.barrier, l.barrierEnds = time.After(left), time.Now().Add(left)
	}
	if l.Lease > 0 && passed > l.Lease {
		l.Logger.Warn(fmt.Sprintf("continued after %v, in which this node's lease of %v was over: the other nodes may have gone on without it",
			passed.Round(time.Millisecond), l.Lease))
		return
	}
	l.Logger.Debug("continued", "after", passed)
}
