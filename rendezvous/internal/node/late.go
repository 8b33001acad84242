package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// tooLate decides what becomes of a node that finds that the job has ended. If the node was started before that end, it
// belongs to the job and is late: it ends as the others did. Otherwise somebody uses the run ID for another job, and
// the node refuses: it must not look as if that other job had run; unless it is to end as the others did in any case. A
// wrong refusal does less harm, so two clocks have to agree that the node is late: the store's, which says how long ago
// the job ended, but begins again when the store is restarted; and the leader's, which may differ from this node's.
func (m *stateMachine) tooLate(v *view) {
	switch {
	case m.member.refused != nil || m.member.self.Try == 0:
	case m.config.EndAsOthers:
		m.endAsOthers(v)
	default:
		m.request(dating, &dateEnd{view: v})
	}
}

// dateEnd finds out how long ago the job has ended.
type dateEnd struct {
	view *view
	ago  time.Duration
}

func (r *dateEnd) do(ctx context.Context, x *executor) error {
	_, left, err := x.store.Keep(ctx, r.view.stateLease, 0) // which is not renewed
	r.ago = outcomeRetention - left
	return err
}

func (r *dateEnd) done(m *stateMachine, err error) {
	state := r.view.state
	switch started := m.config.Started; {
	case err != nil:
		m.conn.dirty = true
		m.onFailure(err)
	case m.now.Sub(started) > r.ago && started.Before(state.At):
		m.endAsOthers(r.view)
	default:
		m.member.refuse(&rendezvous.MisuseError{Err: &EndedError{RunID: m.config.RunID, Outcome: state.Outcome, At: state.At}})
	}
}

func (m *stateMachine) endAsOthers(v *view) {
	m.log(slog.LevelWarn, "the job ended before this node came; to run it again, choose another run ID", "run_id", m.config.RunID)
	m.finish(&rendezvous.ClosedError{Outcome: v.state.Outcome})
}

// An EndedError says that a job of that name has ended, and this node cannot be one of its.
type EndedError struct {
	RunID   string
	Outcome rendezvous.Outcome
	At      time.Time // by the clock of the node that led
}

// Error is one line, with what to do.
func (e *EndedError) Error() string {
	return fmt.Sprintf("a job named %q ended at %s: %v; its name is kept for an hour: choose another --rdzv-id, "+
		"or, for a node that comes back to it, after_end=result in --rdzv-conf",
		e.RunID, e.At.UTC().Format("2006-01-02 15:04:05 MST"), e.how())
}

// Is reports whether target is rendezvous.ErrEnded.
func (e *EndedError) Is(target error) bool { return target == rendezvous.ErrEnded }

func (e *EndedError) how() string {
	switch o := e.Outcome; {
	case o.Failure != nil:
		return o.Failure.String()
	case o.Reason != "":
		return o.Reason
	default:
		return "all workers succeeded"
	}
}
