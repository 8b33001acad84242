package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/cmd/gorun/internal/statuspage"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// An etcdMemory remembers how a job uses its etcd.
type etcdMemory struct {
	Etcd
	config atomic.Pointer[rendezvous.Config]
}

// Rendezvous implements Etcd. What needs a token is remembered as soon as that is known.
func (e *etcdMemory) Rendezvous(c rendezvous.Config) rendezvous.Rendezvous {
	get := c.Token
	if get == nil {
		e.config.Store(&c)
		return e.Etcd.Rendezvous(c)
	}
	known := c
	c.Token = func(ctx context.Context) (secret string, giver io.Closer, err error) {
		if secret, giver, err = get(ctx); err == nil {
			known.Secret = secret
			e.config.Store(&known)
		}
		return secret, giver, err
	}
	return e.Etcd.Rendezvous(c)
}

// contacts returns the agents of the job.
func (e *etcdMemory) contacts(ctx context.Context) (rendezvous.Contacts, error) {
	c := e.config.Load()
	if c == nil {
		return rendezvous.Contacts{}, errors.New("the nodes have not met yet")
	}
	return e.Contacts(ctx, rendezvous.Config{Access: c.Access, RunID: c.RunID, Prefix: c.Prefix})
}

// statusPage serves the status page, if the user wants it. nil: it does not.
func (p *Plan) statusPage(server *control.Server, written *launcher.Recent, etcd *etcdMemory, logger *slog.Logger) (*statuspage.Server, error) {
	if p.StatusAddr == "" {
		return nil, nil
	}
	wrong := func(format string, err error) error {
		return &rendezvous.MisuseError{Err: fmt.Errorf("%s: "+format, p.Given["status-addr"], err)}
	}
	l, err := net.Listen("tcp", p.StatusAddr)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		}
		return nil, wrong("the status page cannot listen there: %w", agent.Bare(err))
	}
	token, file, err := auth.StatusPageToken()
	addr, _ := netip.ParseAddrPort(l.Addr().String()) // package net has made it
	if err != nil && !addr.Addr().IsLoopback() {
		_ = l.Close() // err says it all
		return nil, wrong("those who look from other machines need a token, and its file cannot be used (%w): use a port without a host", err)
	}
	c := statuspage.Config{
		Own:    control.NewClient(inProcess(server)),
		Recent: written, RunID: p.Agent.RunID, Endpoint: p.Agent.Status.Endpoint, Version: p.Agent.Status.Gorun, Token: token, Logger: logger,
	}
	if p.Etcd != nil {
		c.Contacts = etcd.contacts
	}
	page := statuspage.New(c)
	page.Serve(l)
	text := fmt.Sprintf("status page at http://%s/", pageHost(addr))
	if token != "" && !addr.Addr().IsLoopback() {
		text += "; log in with the token in " + file
	}
	logger.Info(text)
	return page, nil
}

// pageHost is how people reach the page.
func pageHost(addr netip.AddrPort) string {
	if !addr.Addr().IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort(network.Hostname(), strconv.Itoa(int(addr.Port())))
}

// inProcess connects to a server of this process.
func inProcess(server *control.Server) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		go server.ServeConn(there)
		return here, nil
	}
}
