package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/gorun/gorun/rendezvous"
)

// In an outage etcd cannot be used. It begins when a request fails, or the lease cannot be kept alive. It ends with a read that
// succeeds: see onRead.

// onFailure fails what waits if there is no hope, and otherwise lets it wait.
func (l *loop) onFailure(err error) {
	var document *DocumentError
	switch {
	case errors.As(err, &document):
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // onLease hears of a new lease
		l.dirty = true
		return
	case isRefusal(err):
		err = l.config.refusal(err)
	default:
		l.onOutage(err)
		return
	}
	if len(l.joins) == 0 && err.Error() != l.complaint { // otherwise they tell
		l.complaint = err.Error()
		l.config.Log.Warn("rendezvous", "error", err)
	}
	l.fail(&rendezvous.MisuseError{Err: err})
}

func (l *loop) onOutage(err error) {
	now := time.Now()
	if l.outage.IsZero() {
		l.outage = now
		l.dirty = true // a read shows when it is over
		l.explain(err)
	}
	err = fmt.Errorf("etcd cannot be used: %w", l.trouble)
	if now.Sub(l.outage) >= l.config.JoinTimeout {
		l.fail(err)
	}
	if l.closed == nil && now.Sub(l.outage) > callTimeout {
		l.say(err.Error())
	}
}

// explain finds out what is behind an error, and says it.
func (l *loop) explain(err error) {
	err = fmt.Errorf("%v: %w", l.etcd.client.Endpoints(), err)
	l.trouble = err
	l.start(explaining, func(ctx context.Context) error {
		if why := l.config.Explain(ctx); why != nil {
			err = why
		}
		return nil
	}, func(error) { l.onExplained(err) })
}

// onExplained logs a warning, unless the outage is over by now.
func (l *loop) onExplained(err error) {
	l.trouble = err
	if l.outage.IsZero() {
		return
	}
	l.warnedOf = l.outage
	l.config.Log.Warn(fmt.Sprintf("etcd cannot be used: %v (rounds go on, and none begins until it can)", err))
}
