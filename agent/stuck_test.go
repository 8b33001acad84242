package agent

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// stuck is a rendezvous of which no call returns: those with a context wait for its end, and the others for that of the test.
type stuck struct {
	rendezvous.Rendezvous // nil: it forms no round, either
	released              <-chan struct{}
}

func (s stuck) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	if s.Rendezvous != nil {
		return s.Rendezvous.Join(ctx, self)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func untilEnd(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (stuck) Report(ctx context.Context, _ *rendezvous.Round, _ *rendezvous.Failure) error {
	return untilEnd(ctx)
}
func (stuck) Leave(ctx context.Context, _ *rendezvous.Round, _ error) error { return untilEnd(ctx) }
func (stuck) Close(ctx context.Context, _ error) error                      { return untilEnd(ctx) }
func (stuck) Restart(ctx context.Context, _ *rendezvous.Round, _ string) error {
	return untilEnd(ctx)
}
func (stuck) Drain(ctx context.Context, _ *rendezvous.Round) error { return untilEnd(ctx) }
func (stuck) Scale(ctx context.Context, _, _ int) error            { return untilEnd(ctx) }
func (s stuck) Limits() (least, most int)                          { <-s.released; return 0, 0 }
func (s stuck) HostsAlone() bool                                   { <-s.released; return true }

// TestStuckRendezvous: whatever people have asked before, and though no call of the rendezvous returns, an interrupt or a stop ends the job
// on this node at once.
func TestStuckRendezvous(t *testing.T) {
	for _, hasRound := range []bool{false, true} {
		for _, kind := range []CommandKind{"", CommandStop} {
			name := map[bool]string{false: "joining ", true: "running "}[hasRound] + string(kind)
			t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { endStuck(t, hasRound, kind) }) })
		}
	}
}

// endStuck ends a job by a command, or by SIGINT if there is none.
func endStuck(t *testing.T, hasRound bool, kind CommandKind) {
	s := newTestbed(t, 0, []script{{obeys: 0}})
	released, commands := make(chan struct{}), make(chan Command, 8)
	defer close(released)
	r := stuck{released: released}
	if hasRound {
		r.Rendezvous = s.config.Rendezvous
	}
	s.config.Rendezvous, s.config.Commands = r, commands
	for _, k := range []CommandKind{CommandDrain, CommandRestart, CommandScale, CommandStacks, CommandDrain} {
		ask(t, time.Second, commands, k)
	}
	if kind == "" {
		after(2*time.Second, s.interrupts, syscall.SIGINT)
	} else {
		stopped := ask(t, 2*time.Second, commands, kind)
		time.AfterFunc(2*time.Second+time.Millisecond, func() {
			if a := <-stopped; a.Err != nil {
				t.Errorf("gorun %s: %v", kind, a.Err)
			}
		})
	}
	_ = Run(t.Context(), s.config)
	if took := time.Since(s.start); took != 2*time.Second+closeTimeout {
		t.Errorf("it took %v, and the rendezvous has %v to close", took, closeTimeout)
	}
	sig := syscall.SIGINT
	if kind != "" {
		sig = syscall.SIGTERM
	}
	if hasRound {
		s.wantStory("0s start", "0s port released", "2s stop "+sig.String())
	}
}
