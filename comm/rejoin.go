package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/membership"
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
	Stderr      []string // its last lines there; none if it ran on another node
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

// life is this process's part in the rounds of its job.
var life struct {
	mu      sync.Mutex
	rounds  *membership.Membership // nil: it ends with its round
	options []Option               // of Init
}

// Rejoin returns the world of the next round. A job started with gorun --on-failure=replace survives the failure of a worker: gorun
// starts it again, and the calls of the others on every group fail with a [PeerError]. They, and in the new process [Init], then meet in a
// new world, in which a rank may have another number, and there may be more ranks, or fewer.
//
// Rejoin closes the world before, waits for the next round until ctx ends, sets the variables of this process's environment that Init
// reads (see package env), and does what Init did, with the same options. It can be called whenever Init has been, even if Init has failed because the round
// ended meanwhile; if that happens to Rejoin, call it again. Groups and meshes of the old world are closed. All ranks of a node have
// to call it within gorun's --replace-timeout, or they are started again themselves.
//
// Where workers do not outlive a round, Rejoin returns an [ArgumentError] that says why.
func Rejoin(ctx context.Context) (*Group, error) {
	life.mu.Lock()
	defer life.mu.Unlock()
	if life.rounds == nil {
		return nil, &ArgumentError{Op: "Rejoin", Err: whyMortal()}
	}
	if g := latest.Load(); g != nil {
		_ = g.Close() // it has failed, and its errors are known
	}
	round, err := life.rounds.Enter(ctx)
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
	return join(ctx, "Rejoin", life.options)
}

// whyMortal says why this process ends with its round.
func whyMortal() error {
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

// outlive connects this process to its agent, if it can outlive its round.
func outlive(ctx context.Context, opts []Option) error {
	life.mu.Lock()
	defer life.mu.Unlock()
	cfg, socket := newConfig(opts), os.Getenv("GORUN_ROUND_SOCKET")
	if socket == "" || !cfg.isOfRound() {
		return nil
	}
	if life.options = opts; life.rounds != nil {
		return nil
	}
	w, err := env.FromOS()
	if err != nil {
		return err
	}
	life.rounds, err = membership.Connect(ctx, socket, w.Round, onOver)
	return err
}

// isOfRound reports whether the world of these settings is that of the round, which the environment says.
func (c *config) isOfRound() bool { return c.Method == "env://" && c.Store == nil && !c.Ranked }

// outlives reports whether this process outlives the world's round.
func (c *config) outlives() bool { return life.rounds != nil && c.isOfRound() }

// during returns a context that ends with the round, if this process outlives that.
func (c *config) during(ctx context.Context) (context.Context, context.CancelFunc) {
	if !c.outlives() {
		return ctx, func() {}
	}
	return life.rounds.During(ctx)
}

// overError is the error of op, in which a world did not come to be because its round is over.
func overError(op string, r rounds.Round) error {
	if len(r.Died) == 0 {
		return fmt.Errorf("comm: %s: %w", op, errOver(r))
	}
	d := r.Died[0]
	death := deathOf(d)
	return &PeerError{Rank: d.Rank, Host: d.Host, PID: d.Pid, Op: op, Err: death, Death: death, Finder: d.Rank}
}

func errOver(r rounds.Round) error { return fmt.Errorf("%w: that was round %d", ErrRoundOver, r.Round) }

func deathOf(d rounds.Death) *Death { return &Death{d.ExitCode, d.OutOfMemory, d.Reason, d.Stderr} }

// onOver fails all groups of the world whose round is over.
func onOver(r rounds.Round) {
	if g := latest.Load(); g != nil && g.world.round == r.Round {
		g.world.Endpoint.Revoke(failureOf(g, r))
	}
}

// failureOf is what the end of a round means to g.
func failureOf(g *Group, r rounds.Round) *diagnosis.Failure {
	for _, d := range r.Died {
		if d.Rank < g.Size() && d.Rank != g.Rank() {
			death := deathOf(d)
			return &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: d.Rank, Text: death.Error(), Err: death}
		}
	}
	err := errOver(r)
	return &diagnosis.Failure{Kind: diagnosis.Revoked, Rank: g.Rank(), Text: err.Error(), Err: err}
}
