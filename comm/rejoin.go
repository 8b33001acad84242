package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/rounds"
)

// ErrRoundOver is wrapped by the errors of calls that end because gorun is forming another round, and no rank has failed as far as is known:
// nodes come or go. [Rejoin] returns the next world.
var ErrRoundOver = errors.New("gorun is forming another round")

// A Death is how the process of a rank ended, as its agent says.
type Death struct {
	ExitCode    int      // -n: signal n ended it; 0: not known, since its node is gone
	OutOfMemory bool     // the kernel killed it for want of memory
	Reason      string   // in words, one line: "signal 9 (SIGKILL)"
	Stderr      []string // its last lines there; none if its node is gone
}

// Error is the reason and, if there is one, the last line on stderr.
func (d *Death) Error() string {
	text := d.Reason
	if d.OutOfMemory {
		text += ", out of memory"
	}
	if n := len(d.Stderr); n > 0 {
		text += fmt.Sprintf(", after %q on stderr", d.Stderr[n-1])
	}
	return text
}

// A lifetime is what this process takes along from one world to the next.
type lifetime struct {
	mu        sync.Mutex
	rounds    *membership.Membership // nil: this process cannot rejoin
	options   []Option               // of Rejoin: those of Init
	rejoining bool

	worlds openGroups // of the round that are open; there is more than one if Init has been called again

	memory heap.Memory // of Alloc, of worlds that Rejoin has closed, until the next one adopts it
	users  []core.Peer // processes that may have attached it
	rest   heap.Memory // of worlds that the program has closed: Rejoin waits until nobody uses it, and no world adopts it
}

var life = lifetime{rest: heap.Memory{Discards: true}}

// Rejoin returns the world of the next round. A job started with gorun --on-failure=replace survives the failure of a worker: gorun
// starts it again, and the calls of the others on every group fail with a [PeerError]. They, and in the new process [Init], then meet in a
// new world, in which a rank may have another number, and there may be more ranks, or fewer. There you make groups and meshes again, by the
// calls that have made them before.
//
// Rejoin waits for the next round, closes the world of this one with all its groups, sets the variables of this process's environment that
// Init reads (see package env), and does what Init did, with the same options; but if these had the token of that round, it takes that of
// the new one. Memory of [Alloc] stays valid, with its contents, and belongs to the next world: free what you do not need there. Rejoin waits
// for the round until ctx ends or the timeout is over, and then as long for the other ranks. If the agent has not said that this round is over, the others learn that this rank has left.
//
// Rejoin can be called whenever Init has been, even if Init has failed because the round ended meanwhile; if that happens to Rejoin, call it
// again. All ranks of a node have to call it within gorun's --replace-timeout, or they are started again themselves.
//
// Where workers do not outlive a round, Rejoin returns an [ArgumentError] that says why.
func Rejoin(ctx context.Context) (*Group, error) {
	options, err := beginRejoin()
	if err != nil {
		return nil, &ArgumentError{Op: "Rejoin", Err: err}
	}
	defer endRejoin()
	cfg := newConfig(options)
	if err := awaitRound(ctx, &cfg); err != nil {
		return nil, fmt.Errorf("comm: Rejoin: %w", err)
	}
	round, err := life.rounds.Enter()
	if err != nil {
		return nil, fmt.Errorf("comm: Rejoin: %w", err)
	}
	for _, name := range env.Names() {
		if value, ok := round.Env[name]; ok {
			if err := os.Setenv(name, value); err != nil {
				return nil, fmt.Errorf("comm: Rejoin: %w", err)
			}
		}
	}
	return join(ctx, "Rejoin", options)
}

// beginRejoin returns the options of Init, or why this process cannot rejoin.
func beginRejoin() ([]Option, error) {
	life.mu.Lock()
	defer life.mu.Unlock()
	switch {
	case life.rounds == nil:
		return nil, whyNoRejoin()
	case life.rejoining:
		return nil, errors.New("another call of it is under way")
	}
	life.rejoining = true
	return life.options, nil
}

func endRejoin() {
	life.mu.Lock()
	defer life.mu.Unlock()
	life.rejoining = false
}

// awaitRound waits for the next round, and closes the world of this one. If it is known here that this one is over, its world stays open
// until then, so that ranks that do not know it yet do not take this one's end for the cause.
func awaitRound(ctx context.Context, cfg *config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("%w after %v", ErrTimeout, cfg.Timeout))
	defer cancel()
	defer time.AfterFunc(time.Second, func() {
		cfg.Log.Info("comm: Rejoin waits for the next round", "over", life.rounds.Over() != nil)
	}).Stop()
	left := make(chan struct{})
	leave := sync.OnceFunc(func() {
		for _, g := range life.worlds.all() {
			life.detach(g.world)
			_ = g.Close() // it has failed, and its errors are known
		}
		close(left)
	})
	if life.rounds.Over() == nil {
		go leave()
	}
	if err := life.rounds.Await(ctx); err != nil {
		return err
	}
	leave()
	<-left
	for _, m := range []*heap.Memory{&life.memory, &life.rest} {
		if err := m.Await(ctx); err != nil {
			return fmt.Errorf("a call on a group of the round before has not returned: %w", err)
		}
	}
	return nil
}

// whyNoRejoin returns why this process cannot rejoin.
func whyNoRejoin() error {
	_, isWorker := os.LookupEnv("RANK")
	_, isGorun := os.LookupEnv("GORUN_ROUND")
	switch {
	case os.Getenv("GORUN_ROUND_SOCKET") != "":
		return errors.New("this process has not called Init with env://, the usual method, yet")
	case isGorun:
		return errors.New("gorun starts all workers again when one fails: use --on-failure=replace")
	case isWorker:
		return errors.New("the launcher of this process ends all workers when one fails: gorun --on-failure=replace does not")
	default:
		return errors.New("this process was not started by gorun --on-failure=replace")
	}
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
		life.options = append(slices.Clone(opts), withTokenOfRound)
	}
	if life.rounds != nil {
		return nil
	}
	w, err := env.FromOS()
	if err != nil {
		return err
	}
	life.rounds, err = membership.Connect(ctx, socket, w.Round, membership.Events{Over: onOver, End: onEnd})
	return err
}

// withTokenOfRound makes Rejoin use the token of the next round, also if the program has passed that of the first to WithToken.
func withTokenOfRound(c *config) { c.Token = os.Getenv("GORUN_TOKEN") }

// isOfRound reports whether the world of these settings is that of the round, which the environment says.
func (c *config) isOfRound() bool { return c.Method == "env://" && c.Store == nil && !c.Ranked }

// mayRejoin reports whether this process can rejoin after the world of these settings.
func (c *config) mayRejoin() bool { return c.isOfRound() && life.rounds != nil }

// during returns a context that ends with the round as well, if this process can rejoin.
func (c *config) during(ctx context.Context) (context.Context, context.CancelFunc) {
	if !c.mayRejoin() {
		return ctx, func() {}
	}
	return life.rounds.During(ctx)
}

// awaitOver returns the end of the round in which a rank has not met the others because of err, or nil if that is another matter. They may
// have gone because of a death of which the agent has not spoken yet.
func awaitOver(during context.Context, err error) *rounds.Round {
	_, missing := errors.AsType[*bootstrap.MissingError](err)
	if _, wrong := errors.AsType[*core.Error](err); !missing && !wrong && !errors.Is(err, context.Canceled) {
		select {
		case <-during.Done():
		case <-time.After(endpoint.RevokeTimeout):
		}
	}
	if over, ok := errors.AsType[*membership.OverError](context.Cause(during)); ok {
		return &over.Round
	}
	return nil
}
