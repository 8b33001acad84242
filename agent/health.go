package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// longestCooldown is how long a node that is not fit waits at most before it tries again.
const longestCooldown = 10 * time.Minute

// awaitHealth returns nil when this node is fit. It need not check that if the workers of this node ran last and none of them
// was the cause of the round's end. Over etcd, a node that is not fit tries again after a cooldown, for at most
// ReportTimeout in all, which is how long the others wait for it. Other nodes have nobody to take their place, and fail at once.
func (l *loop) awaitHealth(last *rendezvous.Round) error {
	if l.Health == nil || last != nil && !failedHere(last.Err(), l.Node.ID) {
		return nil
	}
	deadline := time.Now().Add(l.ReportTimeout)
	for cooldown := l.Cooldown; ; cooldown = min(2*cooldown, longestCooldown) {
		err := l.Health(l.joinCtx)
		left := time.Until(deadline)
		if err == nil || l.joinCtx.Err() != nil || l.Lease == 0 || left <= 0 {
			return err
		}
		cooldown = min(cooldown, left)
		l.Logger.Warn(fmt.Sprintf("this node does not join: %s; it tries again in %v, and gives up after %v",
			Printable(err.Error()), cooldown.Round(time.Millisecond), left.Round(time.Second)))
		if err := l.wait(cooldown, nil); err != nil {
			return err
		}
	}
}

// failedHere reports whether a worker of the node was the cause of a round's end.
func failedHere(over error, node string) bool {
	news, ok := errors.AsType[*rendezvous.NewRoundError](over)
	return ok && news.Failure != nil && news.Failure.Node == node
}
