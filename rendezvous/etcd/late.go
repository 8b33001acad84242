package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// tooLate is for a node that finds that the job has ended. Either it belongs to that run and is late, or somebody uses the
// name for another one, which must not be taken to have run. What tells them apart is whether the node was started before the
// job had ended. Two witnesses must say so, for to run nothing by mistake is worse than to be refused by mistake. Etcd knows how
// long ago the job ended, but an etcd that was started again takes it to be just now; and the leader has told by its clock, which
// may differ from this node's.
func (m *machine) tooLate(v *view) {
	switch {
	case m.member.refused || m.member.self.Try == 0:
	case m.config.AfterEnd == AfterEndResult:
		m.endAsOthers(v)
	default:
		m.request(dateEnd{v})
	}
}

func (e endDated) apply(m *machine) {
	state := e.view.state
	switch started := m.config.Started; {
	case e.err != nil:
		m.conn.dirty = true
		m.onFailure(e.err)
	case m.now.Sub(started) > e.ago && started.Before(state.At):
		m.endAsOthers(e.view)
	default:
		m.member.refuse(&EndedError{RunID: m.config.RunID, Outcome: state.Outcome, At: state.At})
	}
}

func (m *machine) endAsOthers(v *view) {
	m.log(slog.LevelWarn, "the job had ended before this node came; to run it again, choose another run ID", "run_id", m.config.RunID)
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
	return fmt.Sprintf("a job of the name %q ended at %s: %v; its name is kept for an hour: choose another --rdzv-id, "+
		"or, for a node that comes back to it, after_end=result in --rdzv-conf",
		e.RunID, e.At.UTC().Format("2006-01-02 15:04:05 MST"), e.how())
}

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

// age is how long ago something was written under a lease that is not renewed.
func (w *writer) age(ctx context.Context, lease clientv3.LeaseID) (time.Duration, error) {
	answer, err := w.client.TimeToLive(ctx, lease)
	switch {
	case err != nil:
		return 0, err
	case answer.TTL < 0:
		return 0, errors.New("etcd has just forgotten the job")
	}
	return time.Duration(answer.GrantedTTL-answer.TTL) * time.Second, nil
}
