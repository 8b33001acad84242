// Package etcd is the rendezvous of jobs whose nodes meet over etcd: it finds the etcd, or hosts it if this node
// is to, and then is a node of the job, over that store. A command line that imports only this package imports etcd,
// and no other does.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/internal/etcdstore"
	"github.com/gorun/gorun/rendezvous/internal/node"
	"github.com/gorun/gorun/rendezvous/internal/reach"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// Backend makes rendezvous over an etcd, finds the agents of jobs there, and hosts an etcd.
type Backend struct{}

// Rendezvous returns a rendezvous that finds or hosts its etcd at the first Join.
func (Backend) Rendezvous(c rendezvous.Config) rendezvous.Rendezvous {
	return &lazyRendezvous{config: c, started: time.Now()}
}

// A lazyRendezvous is one over an etcd that has to be found first, or started.
type lazyRendezvous struct {
	*node.Rendezvous // that one; nil: not yet. What is for rounds alone comes after a Join, and goes there at once

	config  rendezvous.Config
	started time.Time

	host  atomic.Pointer[host] // nil: another node hosts the etcd, or it has not started
	opens sync.Mutex           // is held for as long as open and Close wait; it guards what follows
	addr  string               // of this node
	token io.Closer            // gives Config.Token to other nodes; nil: this node does not

	joined bool // by Join, which the agent calls once at a time
}

// lastJobTime is how long the etcd of the last job may take to end, if one job follows the other.
const lastJobTime, lastJobPause = 20 * time.Second, 200 * time.Millisecond

// Join finds or hosts the etcd if that has not been done. A node may be ahead of those that host it: then it meets
// the etcd of the last job of the same name, which ends soon.
func (m *lazyRendezvous) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	defer m.config.Waiting("")
	var ahead time.Time // since when this node waits for the end of the last job; zero: it does not
	for {
		round, err := m.join(ctx, self)
		if m.joined || !m.isOfLastJob(err) || !ahead.IsZero() && time.Since(ahead) > lastJobTime {
			m.joined = m.joined || err == nil
			return round, err
		}
		if ahead.IsZero() {
			ahead = time.Now()
		}
		m.config.Waiting(fmt.Sprintf("the last job named %q to end", m.config.RunID))
		if !network.Pause(ctx, lastJobPause) {
			return nil, err
		}
		m.startOver(ctx, err)
	}
}

// startOver has open look for an etcd again.
func (m *lazyRendezvous) startOver(ctx context.Context, why error) {
	m.opens.Lock()
	defer m.opens.Unlock()
	_ = m.shut(ctx, why) // nobody has joined by it
	m.Rendezvous = nil
}

// isOfLastJob reports whether an error of join is that of an etcd of the last job. A Token is of one job, about which
// its nodes agree, so that other credentials are those of another job.
func (m *lazyRendezvous) isOfLastJob(err error) bool {
	return m.config.Successive && (errors.Is(err, rendezvous.ErrEnded) || m.config.Token != nil && errors.Is(err, rendezvous.ErrCredentials))
}

func (m *lazyRendezvous) join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	inner, addr, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	if self.Addr == "" {
		self.Addr = addr
	}
	return inner.Join(ctx, self)
}

// HostsAlone reports whether this node hosts the only etcd.
func (m *lazyRendezvous) HostsAlone() bool {
	return m.host.Load() != nil && len(m.config.Endpoints) == 1
}

// Leave gives the others the exit code of this node: it is that of a job that cannot do without it.
func (m *lazyRendezvous) Leave(ctx context.Context, round *rendezvous.Round, why error) error {
	return m.Rendezvous.Leave(ctx, round, m.departure(why))
}

// Close leaves the job, and then, if it is here, ends the etcd, for which it waits until the other nodes have left.
func (m *lazyRendezvous) Close(ctx context.Context, why error) error {
	m.opens.Lock()
	defer m.opens.Unlock()
	err := m.shut(ctx, why)
	if m.token != nil {
		_ = m.token.Close() // nobody else asks
		m.token = nil
	}
	return err
}

// shut ends what open has begun.
func (m *lazyRendezvous) shut(ctx context.Context, why error) error {
	var errs []error
	if m.Rendezvous != nil {
		errs = append(errs, m.Rendezvous.Close(ctx, m.departure(why)))
	}
	if host := m.host.Swap(nil); host != nil {
		errs = append(errs, host.close(ctx))
		if ctx.Err() != nil && len(m.config.Endpoints) == 1 {
			m.config.Logger.Warn("the rendezvous ends with this node, which hosts it: the other nodes continue their round, but cannot start another")
		}
	}
	return errors.Join(errs...)
}

func (m *lazyRendezvous) departure(why error) error {
	if why == nil {
		return nil
	}
	return departure{why, m.config.ExitCode(why)}
}

// A departure is a node's reason to leave, with its exit code.
type departure struct {
	error
	code int
}

func (d departure) ExitCode() int { return d.code }

// open finds the etcd, or starts it, and gets ready to join.
func (m *lazyRendezvous) open(ctx context.Context) (*node.Rendezvous, string, error) {
	m.opens.Lock()
	defer m.opens.Unlock()
	if m.Rendezvous != nil {
		return m.Rendezvous, m.addr, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.config.JoinTimeout, fmt.Errorf("no rendezvous within %v", m.config.JoinTimeout))
	defer cancel()
	if m.config.Token != nil && m.config.Secret == "" {
		var err error
		if m.config.Secret, m.token, err = m.config.Token(ctx); err != nil {
			return nil, "", err
		}
	}
	c := m.config
	target, err := targetOf(c.Access)
	if err != nil {
		return nil, "", err
	}
	server := embedded.Config{Job: c.RunID, TempDir: c.TempDir, Waiting: c.Waiting, Logger: c.Logger}
	h := &hosting{Access: c.Access, target: target, server: server}
	if m.host.Load() == nil {
		if err := m.tryHost(ctx, h); err != nil {
			return nil, "", err
		}
	}
	for {
		if m.host.Load() == nil {
			if err := await(ctx, target, c.Waiting, func() (bool, error) { return m.hostLater(ctx, h) }); err != nil {
				return nil, "", err
			}
		}
		m.addr = address(ctx, c.Endpoints)
		m.Rendezvous, err = m.connect(target)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return m.Rendezvous, m.addr, err
		}
		c.Waiting(err.Error()) // it has lost its leader just now
	}
}

// tryHost hosts the etcd, if that is for this node to do and nobody has the port.
func (m *lazyRendezvous) tryHost(ctx context.Context, h *hosting) error {
	started, err := h.start(ctx)
	if started == nil || err != nil {
		return err
	}
	if err := h.await(ctx, started, true); err != nil {
		return err
	}
	m.host.Store(started)
	return nil
}

// hostLater hosts the etcd if the process that had the port has ended. It reports whether this node hosts it.
func (m *lazyRendezvous) hostLater(ctx context.Context, h *hosting) (bool, error) {
	if !h.taken {
		return false, nil
	}
	err := m.tryHost(ctx, h)
	return m.host.Load() != nil, err
}

// connect makes the rendezvous over an etcd that can be used.
func (m *lazyRendezvous) connect(t reach.Target) (*node.Rendezvous, error) {
	c := m.config
	s, err := openStore(c, t)
	if err != nil {
		return nil, err
	}
	r, err := node.New(node.Config{
		Config: c, Store: s, Started: m.started, Hosts: m.HostsAlone(),
		Explain: func(ctx context.Context) error { return oneLine(reach.Diagnose(ctx, t)) },
	})
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return r, err
}

// openStore does not wait for etcd, unless that has users.
func openStore(c rendezvous.Config, t reach.Target) (store.Store, error) {
	config := etcdstore.Config{TLS: t.TLS, User: c.User, Password: t.Password, Prefix: cmp.Or(c.Prefix, node.DefaultPrefix)}
	for _, e := range c.Endpoints {
		config.Endpoints = append(config.Endpoints, e.String())
	}
	s, err := etcdstore.Connect(config)
	if _, refused := errors.AsType[*store.RefusedError](err); refused {
		return nil, misuse(err)
	}
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return s, nil
}

// Contacts returns the agents that a job has now. It does not wait for the etcd or the job, if they are not there.
func (Backend) Contacts(ctx context.Context, c rendezvous.Config) (rendezvous.Contacts, error) {
	target, err := targetOf(c.Access)
	if err != nil {
		return rendezvous.Contacts{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, contactsTimeout)
	defer cancel()
	if err := reach.Diagnose(ctx, target); err != nil {
		return rendezvous.Contacts{}, misuse(oneLine(err))
	}
	s, err := openStore(c, target)
	if err != nil {
		return rendezvous.Contacts{}, explainContacts(c, err)
	}
	found, err := node.Contacts(ctx, node.Config{Config: c, Store: s})
	return found, explainContacts(c, errors.Join(err, s.Close()))
}

// explainContacts says for people why Contacts has failed with err, though the etcd was there a moment ago.
func explainContacts(c rendezvous.Config, err error) error {
	if _, ok := errors.AsType[*rendezvous.NoJobError](err); ok {
		return misuse(err)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return misuse(oneLine(fmt.Errorf("%s: its etcd has ended, or has lost its leader, before it has said who is in the job: %w", c.Endpoints[0], err)))
}

const contactsTimeout = 10 * time.Second
