package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/env/auth/munge"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/rendezvous"
)

// An openFunc makes a rendezvous with a token, which tells waiting what it waits for; empty: nothing more.
type openFunc func(token string, waiting func(reason string)) rendezvous.Rendezvous

// A managedRendezvous is that of nodes which a resource manager has started, and which meet where gorun has inferred. If they have no
// token, it gets one by MUNGE before its first Join, and gives it to the other nodes if this is the node of rank 0. What it does not do,
// the rendezvous that it opens does.
type managedRendezvous struct {
	open    openFunc
	byMunge bool
	task    *manager.Task
	runID   string
	addr    rendezvous.Endpoint // of the server that gives others the token
	limit   func(context.Context) (context.Context, context.CancelFunc)
	waiting func(reason string)
	logger  *slog.Logger

	joined bool        // by Join, which the agent calls once at a time
	ahead  atomic.Bool // this node waits for the last job to end

	inner  atomic.Pointer[rendezvous.Rendezvous] // nil: it has not been opened
	opens  sync.Mutex                            // is held for as long as inner takes to be opened or closed
	secret string                                // the token; empty: there is none yet
	server *munge.Server                         // nil: another node has it, or nobody
}

// managed returns the rendezvous that open makes of a token, once there is one.
func (o *options) managed(open openFunc, waiting func(reason string), logger *slog.Logger) rendezvous.Rendezvous {
	timeout := o.joinTimeout()
	return &managedRendezvous{
		open: open, byMunge: o.usesMunge(), secret: o.token,
		task: o.task, runID: o.runID, addr: rendezvous.Endpoint{Host: o.endpoints[0].Host, Port: o.endpoints[0].Port + tokenPort},
		limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no rendezvous within %v", timeout))
		},
		waiting: waiting, logger: logger,
	}
}

// lastJobTime is how long the etcd of the last job may take to end, if a step runs one job after the other.
const lastJobTime, lastJobPause = 20 * time.Second, 200 * time.Millisecond

// Join gets the token if that has not been done. A node may be ahead of those that host the etcd: it meets the etcd of the last job of the
// same step, which ends soon.
func (m *managedRendezvous) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	defer func() {
		m.ahead.Store(false)
		m.waiting("")
	}()
	var ahead time.Time // since when this node is
	for {
		inner, err := m.get(ctx)
		if err != nil {
			return nil, err
		}
		round, err := inner.Join(ctx, self)
		if m.joined || !m.isOfLastJob(err) || m.ahead.Load() && time.Since(ahead) > lastJobTime {
			m.joined = m.joined || err == nil
			return round, err
		}
		if !m.ahead.Swap(true) {
			ahead = time.Now()
		}
		m.waiting(fmt.Sprintf("the last job named %q to end", m.runID))
		select {
		case <-time.After(lastJobPause):
		case <-ctx.Done():
			return nil, err
		}
		m.reopen(ctx, err)
	}
}

// isOfLastJob reports whether an error of Join is that of an etcd of the last job. With MUNGE each job has a token of its own, about which
// its nodes agree, so that other credentials are those of another job.
func (m *managedRendezvous) isOfLastJob(err error) bool {
	return errors.Is(err, rendezvous.ErrEnded) || m.byMunge && errors.Is(err, rendezvous.ErrCredentials)
}

// innerWaits tells what the opened rendezvous waits for. While this node is ahead, its wait goes on when that of one attempt is over.
func (m *managedRendezvous) innerWaits(reason string) {
	if reason != "" || !m.ahead.Load() {
		m.waiting(reason)
	}
}

// reopen replaces the rendezvous by a new one with the same token.
func (m *managedRendezvous) reopen(ctx context.Context, why error) {
	m.opens.Lock()
	defer m.opens.Unlock()
	_ = m.Unwrap().Close(ctx, why) // nobody has joined by it
	m.start()
}

// start makes a rendezvous with the token.
func (m *managedRendezvous) start() rendezvous.Rendezvous {
	inner := m.open(m.secret, m.innerWaits)
	m.inner.Store(&inner)
	return inner
}

func (m *managedRendezvous) get(ctx context.Context) (rendezvous.Rendezvous, error) {
	m.opens.Lock()
	defer m.opens.Unlock()
	if inner := m.Unwrap(); inner != nil {
		return inner, nil
	}
	if m.byMunge {
		ctx, cancel := m.limit(ctx)
		defer cancel()
		var err error
		if m.secret, err = m.mungeToken(ctx); err != nil {
			return nil, err
		}
	}
	return m.start(), nil
}

// Report is for rounds, so there has been a Join.
func (m *managedRendezvous) Report(ctx context.Context, round *rendezvous.Round, failure *rendezvous.Failure) error {
	return m.Unwrap().Report(ctx, round, failure)
}

// Leave is for rounds, so there has been a Join.
func (m *managedRendezvous) Leave(ctx context.Context, round *rendezvous.Round, why error) error {
	return m.Unwrap().Leave(ctx, round, why)
}

// Close closes the rendezvous, and then, if it is here, the server.
func (m *managedRendezvous) Close(ctx context.Context, why error) (err error) {
	m.opens.Lock()
	defer m.opens.Unlock()
	if inner := m.Unwrap(); inner != nil {
		err = inner.Close(ctx, why)
	}
	if m.server != nil {
		_ = m.server.Close() // nobody else asks
		m.server = nil
	}
	return err
}

// Unwrap returns the rendezvous that has been opened; nil: there is none yet. It does not wait for one.
func (m *managedRendezvous) Unwrap() rendezvous.Rendezvous {
	if inner := m.inner.Load(); inner != nil {
		return *inner
	}
	return nil
}
