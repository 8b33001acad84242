package comm

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/env"
)

// A lifetime is what this process keeps from one world to the next.
type lifetime struct {
	mu        sync.Mutex
	rounds    *membership.Membership // nil: this process cannot rejoin
	options   []Option               // of Init, which Rejoin uses again
	rejoining bool

	failure atomic.Pointer[error] // the last failure of a call on this round's worlds, or of joining them; nil: there was none
	others  atomic.Pointer[error] // the last failure of a call on other worlds, or of joining them, for noRejoin; nil: there was none

	worlds openGroups // the open worlds of this round; there is more than one if Init has been called again

	memory heap.Detached // memory of Alloc from worlds that Rejoin has closed; the next world adopts it
	users  []core.Peer   // processes that may have attached that memory
	rest   heap.Detached // memory of worlds that the program has closed: Rejoin waits until nobody uses it, and no world adopts it
}

var life = lifetime{rest: heap.Detached{Discards: true}}

// note records the failure of a call on a group of w.
func (l *lifetime) note(w *core.World, err error) {
	switch {
	case errors.Is(err, ErrClosed):
	case w.WithDeath != nil: // w is a world of the round
		l.failure.Store(&err)
	default:
		l.others.Store(&err)
	}
}

// revoke asks the agent to end the round, unless it is over. It says why, as far as this process knows: in one line, and in the error file.
// If no call has failed, another rank may be about to end: elastic.Run, for example, rejoins when a new rank has another State. Then revoke
// first waits for the agent's word on that.
func (l *lifetime) revoke(ctx context.Context) error {
	round, failure := l.rounds.Round(), l.failure.Load()
	if failure == nil {
		select {
		case <-round.Final():
		case <-time.After(endpoint.RevokeTimeout):
		case <-ctx.Done():
		}
	}
	switch {
	case round.Over() != nil:
		return nil
	case ctx.Err() != nil: // a caller that does not wait for the next round must not end this one
		return context.Cause(ctx)
	}
	why := "it has called comm.Rejoin, and no call of it has failed"
	var missing []int
	if failure != nil {
		if m, ok := errors.AsType[*MissingRanksError](*failure); ok {
			missing = m.Missing
		}
		why = strings.TrimPrefix((*failure).Error(), "comm: ")
		if more := becauseOf(*failure); more != nil {
			writeError(*failure, more)
		}
	}
	return l.rounds.Revoke(why, missing...)
}

// connectAgent connects this process to its agent, unless it cannot rejoin or is connected.
func connectAgent(ctx context.Context, opts []Option) error {
	life.mu.Lock()
	defer life.mu.Unlock()
	cfg, socket := newConfig(opts), os.Getenv("GORUN_ROUND_SOCKET")
	if socket == "" || !cfg.isOfRound() {
		return nil
	}
	if life.options = opts; cfg.Token == os.Getenv("GORUN_TOKEN") {
		life.options = append(slices.Clone(opts), option(withTokenOfRound))
	}
	if life.rounds != nil {
		return nil
	}
	w, err := env.FromOS()
	if err != nil {
		return err
	}
	life.rounds, err = membership.Connect(ctx, socket, w.Round)
	return err
}

// withTokenOfRound makes Rejoin use the token of the next round, even if the program has passed the token of the first round to WithToken.
func withTokenOfRound(c *config) { c.Token = os.Getenv("GORUN_TOKEN") }

// isOfRound reports whether these settings are those of the world that the environment describes: the world of the round.
func (c *config) isOfRound() bool { return c.Method == "env://" && c.Store == nil && !c.Ranked }

// mayRejoin reports whether this process can rejoin after the world of these settings.
func (c *config) mayRejoin() bool { return c.isOfRound() && life.rounds != nil }

// during returns a context that ends with the round as well, if this process can rejoin.
func (c *config) during(ctx context.Context) (context.Context, context.CancelFunc) {
	if !c.mayRejoin() {
		return ctx, func() {}
	}
	return life.rounds.Round().During(ctx)
}
