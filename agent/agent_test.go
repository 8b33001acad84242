package agent

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 2,
			[]script{{after: time.Hour, code: 7}, {obeys: 0, takes: 5 * time.Second}},
			[]script{{obeys: -1}, {after: time.Minute, code: 1}},
			[]script{{after: time.Second}, {after: 2 * time.Second}})
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		s.wantStory(
			"0s start", "0s port released",
			"1h0m0s stop terminated",
			"1h0m5s start", "1h0m5s port released",
			"1h1m5s stop terminated", // rank 0 takes the whole grace period
			"1h1m35s start", "1h1m35s port released")
		for i, spec := range s.specs {
			for _, want := range []string{"TORCHELASTIC_RESTART_COUNT=" + string(rune('0'+i)), "GORUN_ROUND=" + string(rune('1'+i))} {
				if !slices.Contains(spec.Workers[1].Env, want) {
					t.Errorf("attempt %d does not see %s", i, want)
				}
			}
		}
	})
}

func TestRunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 1,
			[]script{{after: time.Second, code: 7}},
			[]script{{after: time.Second, code: 8}})
		var failed *WorkerError
		if err := Run(t.Context(), s.config); !errors.As(err, &failed) {
			t.Fatalf("Run: %v", err)
		}
		if failed.Root.Code() != 8 || failed.Restarts != 1 || failed.Program != "prog" || failed.Host != "here" {
			t.Errorf("Run: %+v", failed)
		}
		_, err := s.config.Rendezvous.Join(t.Context(), s.config.Node)
		var closed *rendezvous.ClosedError
		if !errors.As(err, &closed) || closed.Outcome.Code != 8 || closed.Outcome.Failure.Rank != 0 {
			t.Errorf("after Run, Join: %v; want a closed rendezvous that says why", err)
		}
	})
}

func TestRunInterrupted(t *testing.T) {
	for _, c := range []struct {
		name   string
		worker script
		second bool
		want   error
		took   time.Duration
	}{
		{"obeyed", script{obeys: 0, takes: 2 * time.Second}, false, nil, 12 * time.Second},
		{"obeyed with a code", script{obeys: 5, takes: 2 * time.Second}, false, &InterruptError{Signal: syscall.SIGINT}, 12 * time.Second},
		{"ignored", script{obeys: -1}, false, &InterruptError{Signal: syscall.SIGINT, Killed: 1}, 40 * time.Second},
		{"ignored, then again", script{obeys: -1}, true, &InterruptError{Signal: syscall.SIGINT, Killed: 1}, 13 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 3, []script{c.worker})
				after(10*time.Second, s.interrupts, syscall.SIGINT)
				want := []string{"0s start", "0s port released", "10s stop interrupt"}
				if c.second {
					after(13*time.Second, s.interrupts, syscall.SIGINT)
					want = append(want, "13s kill")
				}
				got := Run(t.Context(), s.config)
				if text(got) != text(c.want) {
					t.Errorf("Run: %v, want %v", got, c.want)
				}
				if took := time.Since(s.start); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				s.wantStory(want...)
			})
		})
	}
}

// TestRunInterruptGrace: the time after an interrupt is not that after a failure. It counts from the interrupt, also if the workers are
// being stopped.
func TestRunInterruptGrace(t *testing.T) {
	for _, c := range []struct {
		name    string
		attempt []script
		story   []string
	}{
		{"running", []script{{obeys: -1}}, []string{"5s grace 2s", "5s stop interrupt", "5s grace 2s"}},
		{"stopping", []script{{after: 4 * time.Second, code: 3}, {obeys: -1}}, []string{"4s stop terminated", "5s grace 2s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 0, c.attempt)
				s.config.InterruptGrace = func() (time.Duration, string) { return 2 * time.Second, "it was set" }
				after(5*time.Second, s.interrupts, syscall.SIGINT)
				if Run(t.Context(), s.config) == nil {
					t.Error("the job has succeeded")
				}
				s.wantStory(append([]string{"0s start", "0s port released"}, c.story...)...)
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRunPassesSignalsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: time.Minute}})
		for i, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT} {
			after(time.Duration(i+1)*time.Second, s.signals, sig)
		}
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "0s port released", "1s signal user defined signal 1", "2s signal user defined signal 2",
			"3s signal window changed", "4s signal continued")
	})
}

// churn is a rendezvous whose first round ends after a minute.
type churn struct {
	rendezvous.Rendezvous
	joins int
}

func (c *churn) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	c.joins++
	if c.joins == 3 {
		<-ctx.Done() // as a rendezvous does that waits for others
		return nil, ctx.Err()
	}
	round, end := rendezvous.Begin(rendezvous.Round{ID: c.joins, Size: 1, Node: self}, nil)
	time.AfterFunc(time.Minute, func() { _ = end(rendezvous.ErrNewRound) })
	return round, nil
}

func TestRunRoundOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: 143}}, []script{{obeys: 143}})
		s.config.Rendezvous = &churn{Rendezvous: s.config.Rendezvous}
		after(time.Hour, s.interrupts, syscall.SIGTERM)
		if err := Run(t.Context(), s.config); text(err) != "stopped by signal 15 (SIGTERM)" {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "1m0s stop terminated", "1m0s start", "2m0s stop terminated")
		if took := time.Since(s.start); took != time.Hour {
			t.Errorf("the interrupt of a join took until %s, want 1h", took)
		}
	})
}

func TestRunStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 3, []script{{}})
		bad := errors.New("exec format error")
		s.config.Start = func(context.Context, launcher.Spec) (Gang, error) { return nil, bad }
		var failed *StartError
		if err := Run(t.Context(), s.config); !errors.As(err, &failed) || !errors.Is(err, bad) {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s port released")
	})
}

// TestRunInterruptedStart: an interrupt during the start lets the workers stop by themselves; a second does not, nor
// does a start that takes longer than workers may take to stop.
func TestRunInterruptedStart(t *testing.T) {
	for name, c := range map[string]struct {
		twice bool
		grace time.Duration
	}{"once": {grace: time.Hour}, "twice": {twice: true, grace: time.Hour}, "too long": {grace: time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 3, []script{{obeys: 0}})
				s.config.Spec.Grace = c.grace
				s.config.Start = func(ctx context.Context, spec launcher.Spec) (Gang, error) {
					select {
					case <-time.After(time.Minute):
						return s.startGang(ctx, spec)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				after(time.Second, s.interrupts, syscall.SIGINT)
				if !c.twice && c.grace > time.Minute {
					if err := Run(t.Context(), s.config); err != nil {
						t.Errorf("Run: %v", err)
					}
					s.wantStory("1m0s start", "1m0s port released", "1m0s stop interrupt")
					return
				}
				if c.twice {
					after(2*time.Second, s.interrupts, syscall.SIGINT)
				}
				if err := Run(t.Context(), s.config); text(err) != "stopped by signal 2 (SIGINT)" {
					t.Errorf("Run: %v", err)
				}
				s.wantStory("2s port released")
			})
		})
	}
}

// TestRunCauseOfEnd: if a context ends with a cause, the error of Run names the cause.
func TestRunCauseOfEnd(t *testing.T) {
	for cause, want := range map[error]string{nil: "stopped by signal 15 (SIGTERM)", errOver: "the time is over: stopped by signal 15 (SIGTERM)"} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestbed(t, 0, []script{{obeys: 5, takes: time.Second}})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			if err := Run(ctx, s.config); text(err) != want {
				t.Errorf("Run: %v, want %s", err, want)
			}
		})
	}
}

// TestRunInterruptedBetween: a round that comes although the join was cancelled gets no workers.
func TestRunInterruptedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{}})
		s.config.Rendezvous = deaf{s.config.Rendezvous}
		after(time.Second, s.interrupts, syscall.SIGTERM)
		if err := Run(t.Context(), s.config); text(err) != "stopped by signal 15 (SIGTERM)" {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("1m0s port released")
	})
}

// deaf is a rendezvous that needs a minute, and does not listen to its context.
type deaf struct{ rendezvous.Rendezvous }

func (d deaf) Join(_ context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	time.Sleep(time.Minute)
	return d.Rendezvous.Join(context.Background(), self)
}

// TestStartThatDoesNotEnd: the second interrupt ends a start that is stuck, in a file system that does not answer, and
// workers that it still brings about are killed.
func TestStartThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: time.Hour}})
		answers := make(chan struct{})
		start := s.config.Start
		s.config.Start = func(ctx context.Context, spec launcher.Spec) (Gang, error) {
			<-answers
			return start(ctx, spec)
		}
		after(time.Second, s.interrupts, syscall.SIGINT)
		after(2*time.Second, s.interrupts, syscall.SIGINT)
		err := Run(t.Context(), s.config)
		if stopped, ok := errors.AsType[*InterruptError](err); !ok || stopped.Signal != syscall.SIGINT {
			t.Errorf("%v", err)
		}
		s.record("over")
		close(answers)
		synctest.Wait()
		s.wantStory("4s port released", "4s over", "4s start", "4s kill")
	})
}
