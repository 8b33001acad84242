package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/network"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A storeHost serves a store for the workers of a round that know token.
type storeHost func(token string) (addr string, store io.Closer, err error)

// rendezvous returns the job's rendezvous. server learns what it waits for, and gets the connections of people who ask over the network.
func (o *options) rendezvous(etcd Etcd, tempDir string, server *control.Server, s *session) (rendezvous.Rendezvous, error) {
	switch {
	case o.elastic():
		said := newWaiting(s.logger)
		waiting := func(reason string) {
			said.set(reason)
			server.SetWaiting(reason)
		}
		c := o.elasticConfig(tempDir, s.logger)
		c.Waiting, c.Control, c.Scaled = waiting, server.ServeConn, s.node.scaled
		if o.inferred != nil && o.inferred.meeting {
			c.Successive = true
			if o.usesMunge() {
				c.Token = o.mungeToken(waiting, s.logger)
			}
		}
		return etcd.Rendezvous(c), nil
	case o.nnodes == 1:
		return o.local(reserve, hostStore(s.logger)), nil
	default:
		return o.static(reserve)
	}
}

// contacts returns the agents that the job has now.
func (o *options) contacts(ctx context.Context, etcd Etcd) (rendezvous.Contacts, error) {
	return etcd.Contacts(ctx, rendezvous.Config{Access: o.access(), RunID: o.runID, Prefix: o.conf.prefix()})
}

func (o *options) local(reserve rendezvous.ReserveFunc, host storeHost) rendezvous.Rendezvous {
	return rendezvous.NewLocal(rendezvous.StaticConfig{Master: o.master, Reserve: reserve, Host: host, MaxRestarts: o.maxRestarts})
}

func (o *options) static(reserve rendezvous.ReserveFunc) (rendezvous.Rendezvous, error) {
	token := o.token
	if token != "" { // the workers of this job know no other's
		token = auth.Derive([]byte(token), fmt.Sprintf("workers of static job %q at port %d", o.runID, o.master.Port))
	}
	static, err := rendezvous.NewStatic(rendezvous.StaticConfig{
		Nodes: o.nnodes, NodeRank: o.nodeRank, Master: o.master, Token: token, MaxRestarts: o.maxRestarts, Reserve: reserve,
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return static, nil
}

// hostStore serves the store in which the workers of one round meet. So the store exists before the workers, and
// can report missing ranks even if rank 0 is one of them.
func hostStore(logger *slog.Logger) storeHost {
	return func(token string) (string, io.Closer, error) {
		server, err := comm.ListenStore(net.JoinHostPort(network.Loopback().String(), "0"), []byte(token), atDebug(logger))
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

// start converts the launcher's type to the interface of package agent.
func start(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
	gang, err := launcher.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return gang, nil
}

func (o *options) node() rendezvous.Node {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	id := fmt.Sprintf("%s/%d", host, os.Getpid())
	if o.localAddr != "" && !o.elastic() {
		host = o.localAddr
	}
	return rendezvous.Node{
		ID: id, Host: host, Addr: o.localAddr, NodeRank: o.nodeRank, Nproc: o.nproc, Role: o.role,
		StopTimeout: launcher.StopTimeout(o.grace),
	}
}
