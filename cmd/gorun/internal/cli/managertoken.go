package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
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
	switch {
	case o.outside && o.canMunge():
		return nil // askByMunge gets one
	case o.outside:
		return o.missingCredentials()
	case o.task == nil || o.inferred == nil:
		return usagef("%s: anybody who reached this endpoint could start programs: give every node the same secret, as in --rdzv-token-file=token (create it with umask 077; openssl rand -hex 32 >token)",
			o.given["rdzv-endpoint"])
	}
	write := o.task.ShareToken()
	if o.task.Munge && o.canMunge() {
		if o.inferred.meeting {
			o.inferred.Token = byMunge
			return nil
		}
		write = "leave out --rdzv-endpoint, --rdzv-backend and --rdzv-id: then they get one by MUNGE"
	}
	return usagef("%s: the nodes need a token, so that nobody else can start programs at %s: %s", o.inferred.Manager, o.endpoint, write)
}

// missingCredentials is for somebody who looks at a job.
func (o *options) missingCredentials() error {
	return usagef("%s: only who has the credentials of a job may see and steer it: give those of its nodes, as in --rdzv-token-file=token", o.given["rdzv-endpoint"])
}

const byMunge = "from the node of rank 0, by MUNGE"

// canMunge reports whether this machine has MUNGE, as those of a cluster with Slurm have.
func (o *options) canMunge() bool { return o.host.hasProgram("munge") && o.host.hasProgram("unmunge") }

// usesMunge reports whether the nodes get their token by MUNGE.
func (o *options) usesMunge() bool { return o.inferred != nil && o.inferred.Token == byMunge }

// mungeToken returns what makes a token and begins to give it to the other nodes, or gets it.
func (o *options) mungeToken(waiting func(reason string), logger *slog.Logger) rendezvous.TokenFunc {
	task, addr := o.task, tokenAddr(o.endpoints[0])
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
			token, err := munge.Ask(ctx, addr.String(), o.runID, strconv.Itoa(task.Node), waiting)
			if ctx.Err() == nil && err != nil {
				err = &rendezvous.MisuseError{Err: err}
			}
			return token, nil, err
		}
		l, err := munge.Listen(ctx, addr.Host, addr.Port)
		if err != nil {
			return "", nil, misuse("cannot give the other nodes a token by MUNGE", err)
		}
		token := munge.NewSecret()
		return token, munge.Serve(l, o.runID, token, logger.With("token", addr.String()).Info), nil
	}
}

// askTime limits how long a command about a running job waits for the token from the node of rank 0.
const askTime = 5 * time.Second

// askByMunge gets the token of a running job of Slurm from its node of rank 0, as the other nodes do.
func (o *options) askByMunge(ctx context.Context) error {
	if !o.hosted() || o.token != "" || o.conf["ssl_cert"] != "" || !o.exposed() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("it does not answer within %v", askTime))
	defer cancel()
	if munge.Check(ctx) != nil { // it is installed, but does not run
		return o.missingCredentials()
	}
	token, err := munge.Ask(ctx, tokenAddr(o.endpoints[0]).String(), o.runID, "", func(string) {})
	if err != nil {
		return usagef("%s: only who has the credentials of a job may see and steer it, and MUNGE gives none: %w; give those of its nodes, as in --rdzv-token-file=token", o.given["rdzv-endpoint"], err)
	}
	o.token = token
	return nil
}

// tokenAddr is where the node of rank 0 gives others the token, if that is the node of the first endpoint.
func tokenAddr(first rendezvous.Endpoint) rendezvous.Endpoint {
	return rendezvous.Endpoint{Host: first.Host, Port: first.Port + manager.TokenPort}
}
