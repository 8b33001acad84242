package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"syscall"

	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/munge"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

// Etcd is what a job does with etcd. The interface keeps etcd's hundreds of packages out of this one.
type Etcd interface {
	// Rendezvous returns the rendezvous that flags describe. It does not wait for anything.
	Rendezvous(rendezvous.Config) rendezvous.Rendezvous
	// Contacts returns the agents of a running job. It waits for nothing that is not there.
	Contacts(context.Context, rendezvous.Config) (rendezvous.Contacts, error)
}

// token returns the secret that all nodes have, as far as it is known before they meet.
func (p *Plan) token() (token string, err error) {
	switch {
	case p.OwnToken:
		if token, _, err = auth.LoopbackToken(); err != nil {
			err = &rendezvous.MisuseError{Err: fmt.Errorf("%w: give every node the same token, as in --rdzv-token-file=token", err)}
		}
		return token, err
	case p.Etcd != nil:
		return p.Etcd.Secret, nil
	default:
		return p.Static.Token, nil
	}
}

// rendezvous returns the job's rendezvous. server learns what it waits for, and gets the connections of people who ask over the network.
func (p *Plan) rendezvous(etcd Etcd, token, tempDir string, server *control.Server, s *Session) (rendezvous.Rendezvous, error) {
	if p.Etcd == nil {
		return p.static(token, reserve, hostStore(s.Debug))
	}
	said := newWaiting(s.Logger)
	c := *p.Etcd
	c.Waiting = func(reason string) {
		said.set(reason)
		server.SetWaiting(reason)
	}
	c.Secret, c.TempDir, c.Reserve, c.ExitCode, c.Logger = token, tempDir, reserve, s.ExitCode, s.Logger
	c.Control, c.Scaled = server.ServeConn, s.Scaled
	if p.ByMunge != nil {
		c.Token = p.mungeToken(c.Waiting, s.Logger)
	}
	return etcd.Rendezvous(c), nil
}

// static returns the rendezvous of nodes that do not meet.
func (p *Plan) static(token string, reserve rendezvous.ReserveFunc, host storeHost) (rendezvous.Rendezvous, error) {
	c := p.Static
	c.Token, c.Reserve = "", reserve
	if c.Nodes == 1 {
		c.Host = host
		return rendezvous.NewLocal(c), nil
	}
	if token != "" { // the workers of this job know no other's
		c.Token = auth.Derive([]byte(token), fmt.Sprintf("workers of static job %q at port %d", p.Agent.RunID, c.Master.Port))
	}
	static, err := rendezvous.NewStatic(c)
	if err != nil {
		return nil, &rendezvous.MisuseError{Err: err}
	}
	return static, nil
}

// FirstRound returns the first round as far as one node can know it, without reserving a port. If nodes meet over etcd, it is a guess: size
// nodes like this one meet. The token is not the true one.
func (p *Plan) FirstRound(ctx context.Context, size int, token string) (*rendezvous.Round, error) {
	self := p.Agent.Node
	if p.Etcd == nil {
		if p.Static.Token == "" {
			token = ""
		}
		meeting, err := p.static(token, func(_ string, port int) (rendezvous.Port, error) { return noPort(port), nil }, nil)
		if err != nil {
			return nil, err
		}
		return meeting.Join(ctx, self)
	}
	nodes := make([]rendezvous.Node, size)
	for i := range nodes {
		nodes[i] = self
	}
	rank := max(0, self.NodeRank)
	round, _ := rendezvous.Begin(rendezvous.Round{
		ID: 1, Size: size, Self: rank, Node: self, Place: rendezvous.Assign(nodes)[rank],
		Master: rendezvous.Master{Port: p.Etcd.MasterPort}, Token: token,
	}, nil)
	return round, nil
}

// noPort is the number of a port that nobody has reserved.
type noPort int

// Number implements rendezvous.Port.
func (p noPort) Number() int { return int(p) }

// Close implements rendezvous.Port.
func (noPort) Close() error { return nil }

// A storeHost serves a store for the workers of a round that know token.
type storeHost func(token string) (addr string, store io.Closer, err error)

// hostStore serves the store in which the workers of one round meet. So the store exists before the workers, and
// can report missing ranks even if rank 0 is one of them.
func hostStore(logger *slog.Logger) storeHost {
	return func(token string) (string, io.Closer, error) {
		server, err := comm.ListenStore(net.JoinHostPort(network.Loopback().String(), "0"), []byte(token), logger)
		if err != nil {
			return "", nil, err
		}
		return server.Addr(), server, nil
	}
}

// reserve reserves the master port.
func reserve(host string, port int) (rendezvous.Port, error) {
	p, err := network.ReservePort(host, port)
	if err != nil {
		return nil, withFlag(err, port)
	}
	return p, nil
}

// withFlag adds to an error about the master port which flag to change.
func withFlag(err error, port int) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && port != 0:
		return fmt.Errorf("%w: choose another with --master-port", err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: choose one above 1023 with --master-port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: choose one of this machine's with --master-addr", err)
	}
	return err
}

// TokenAddr is where the node of rank 0 gives others the token, if that is the node of the first endpoint.
func TokenAddr(first rendezvous.Endpoint) rendezvous.Endpoint {
	return rendezvous.Endpoint{Host: first.Host, Port: first.Port + manager.TokenPort}
}

// mungeToken returns what makes a token and begins to give it to the other nodes, or gets it.
func (p *Plan) mungeToken(waiting func(reason string), logger *slog.Logger) rendezvous.TokenFunc {
	task, addr, job := p.ByMunge, TokenAddr(p.Etcd.Endpoints[0]), p.Agent.RunID
	misuse := func(what string, err error) error {
		return &rendezvous.MisuseError{Err: fmt.Errorf("%s: %w; %s", what, err, task.ShareToken())}
	}
	return func(ctx context.Context) (string, io.Closer, error) {
		switch err := munge.Check(ctx); { // on each node, so that no node waits for one that has no MUNGE
		case ctx.Err() != nil: // also if MUNGE works: there is no token yet
			return "", nil, context.Cause(ctx)
		case err != nil:
			return "", nil, misuse("cannot get a token by MUNGE, which does not work on "+task.Hosts[task.Node], err)
		}
		if task.Node > 0 {
			defer waiting("")
			token, err := munge.Ask(ctx, addr.String(), job, strconv.Itoa(task.Node), waiting)
			if ctx.Err() == nil && err != nil {
				err = &rendezvous.MisuseError{Err: err}
			}
			return token, nil, err
		}
		l, err := munge.Listen(ctx, addr.Host, addr.Port)
		if err != nil {
			return "", nil, misuse("cannot give the other nodes a token by MUNGE", err)
		}
		token := auth.NewSecret()
		return token, munge.Serve(l, job, token, logger.With("token", addr.String()).Info), nil
	}
}
