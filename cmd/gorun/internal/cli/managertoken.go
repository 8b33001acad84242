package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/env/auth/munge"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/rendezvous"
)

// hasProgram reports whether a program is on PATH.
func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// missingToken decides what happens if the nodes need a token and the user has given none. Slurm's clusters have MUNGE, with which the node
// of rank 0 can give the others one. Where there is no such way, the error says what to write.
func (o *options) missingToken() error {
	if o.outside {
		return usagef("%s: only who has the credentials of a job may see and steer it: give those of its nodes, as in --rdzv-token-file=token", o.given["rdzv-endpoint"])
	}
	if o.task == nil || o.inferred == nil {
		return usagef("%s: anybody who reached this endpoint could start programs: give every node the same secret, as in --rdzv-token-file=token (create it with umask 077; openssl rand -hex 32 >token)",
			o.given["rdzv-endpoint"])
	}
	var write string
	switch t := o.task; {
	case t.Manager == manager.Slurm && o.inferred.meeting && o.host.hasProgram("munge") && o.host.hasProgram("unmunge"):
		o.inferred.Token = byMunge
		return nil
	case t.Manager == manager.Slurm:
		write = "write export GORUN_TOKEN=$(openssl rand -hex 32) before srun"
	case t.Manager == manager.Kubernetes:
		write = "put one into a Secret (kubectl create secret generic gorun --from-literal=token=$(openssl rand -hex 32)), and that into the variable GORUN_TOKEN of the pods (env, valueFrom, secretKeyRef)"
	case t.Manager == manager.OpenMPI:
		write = "write export GORUN_TOKEN=$(openssl rand -hex 32) before mpirun, and mpirun -x GORUN_TOKEN"
	default:
		write = "write export GORUN_TOKEN=$(openssl rand -hex 32) before the command that starts gorun on the nodes"
	}
	return usagef("%s: the nodes need a token, so that nobody else can start programs at %s: %s", o.inferred.Manager, o.endpoint, write)
}

const byMunge = "from the node of rank 0, by MUNGE"

// usesMunge reports whether the nodes get their token by MUNGE.
func (o *options) usesMunge() bool { return o.inferred != nil && o.inferred.Token == byMunge }

// A mungeRendezvous gets a token by MUNGE before its first Join, and gives it to the other nodes if this is the node of rank 0. What it
// does not do, the rendezvous with that token does.
type mungeRendezvous struct {
	rendezvous.Rendezvous // nil: there is no token yet

	open    func(token string) rendezvous.Rendezvous
	task    *manager.Task
	addr    rendezvous.Endpoint // of the server
	limit   func(context.Context) (context.Context, context.CancelFunc)
	waiting func(reason string)
	logger  *slog.Logger

	joined bool // by Join, which the agent calls once at a time

	mu     sync.Mutex
	secret string        // the token; empty: there is none yet
	server *munge.Server // nil: another node has it
}

// withMunge returns the rendezvous that open makes of a token, once there is one.
func (o *options) withMunge(open func(token string) rendezvous.Rendezvous, waiting func(reason string), logger *slog.Logger) rendezvous.Rendezvous {
	timeout := o.joinTimeout()
	return &mungeRendezvous{
		open: open, task: o.task, addr: rendezvous.Endpoint{Host: o.endpoints[0].Host, Port: o.endpoints[0].Port + tokenPort},
		limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no rendezvous within %v", timeout))
		},
		waiting: waiting, logger: logger,
	}
}

// lastJobTime is how long the etcd of the last job may take to end, if a step runs one job after the other.
const lastJobTime, lastJobPause = 20 * time.Second, 200 * time.Millisecond

// Join gets the token if that has not been done. The nodes agree about the token, so that an etcd with other credentials is that of the
// job before this one in the same step, which ends soon.
func (m *mungeRendezvous) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	defer m.waiting("")
	for begun := time.Now(); ; {
		inner, err := m.get(ctx)
		if err != nil {
			return nil, err
		}
		round, err := inner.Join(ctx, self)
		if !errors.Is(err, rendezvous.ErrCredentials) || m.joined || time.Since(begun) > lastJobTime {
			m.joined = m.joined || err == nil
			return round, err
		}
		m.waiting("the last job of this step to end: " + err.Error())
		select {
		case <-time.After(lastJobPause):
		case <-ctx.Done():
			return nil, err
		}
		m.reopen(ctx, err)
	}
}

// reopen replaces the rendezvous by a new one with the same token.
func (m *mungeRendezvous) reopen(ctx context.Context, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.Rendezvous.Close(ctx, why) // nobody has joined by it
	m.Rendezvous = m.open(m.secret)
}

func (m *mungeRendezvous) get(ctx context.Context) (rendezvous.Rendezvous, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Rendezvous != nil {
		return m.Rendezvous, nil
	}
	ctx, cancel := m.limit(ctx)
	defer cancel()
	token, err := m.token(ctx)
	if err != nil {
		return nil, err
	}
	m.secret, m.Rendezvous = token, m.open(token)
	return m.Rendezvous, nil
}

// token makes a token and begins to give it to the other nodes, or gets it.
func (m *mungeRendezvous) token(ctx context.Context) (string, error) {
	if m.task.Node > 0 {
		defer m.waiting("")
		token, err := munge.Ask(ctx, m.addr.String(), m.task.ID, strconv.Itoa(m.task.Node), m.waiting)
		if ctx.Err() == nil && err != nil {
			err = &rendezvous.MisuseError{Err: err}
		}
		return token, err
	}
	misuse := func(err error) error {
		return &rendezvous.MisuseError{Err: fmt.Errorf("cannot give the other nodes a token by MUNGE: %w; write export GORUN_TOKEN=$(openssl rand -hex 32) before srun", err)}
	}
	if err := munge.Check(ctx); err != nil {
		return "", misuse(err)
	}
	l, err := munge.Listen(ctx, m.addr.Host, m.addr.Port)
	if err != nil {
		return "", misuse(err)
	}
	token := munge.NewSecret()
	m.server = munge.Serve(l, m.task.ID, token, m.logger.With("token", net.JoinHostPort(m.addr.Host, strconv.Itoa(m.addr.Port))).Info)
	return token, nil
}

// Close closes the rendezvous, and then, if it is here, the server.
func (m *mungeRendezvous) Close(ctx context.Context, why error) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Rendezvous != nil {
		err = m.Rendezvous.Close(ctx, why)
	}
	if m.server != nil {
		_ = m.server.Close() // nobody else asks
		m.server = nil
	}
	return err
}

// Unwrap returns the rendezvous with the token; nil: there is none yet.
func (m *mungeRendezvous) Unwrap() rendezvous.Rendezvous {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Rendezvous
}
