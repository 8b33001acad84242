package cli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/munge"
	"github.com/gorun/gorun/rendezvous"
)

// loadToken reads the token file, if there is one, and checks the token; it is never shown.
func (o *flags) loadToken() error {
	from := "GORUN_TOKEN"
	if o.tokenFile != "" {
		from = o.given["rdzv-token-file"]
		text, err := auth.ReadTokenFile(o.tokenFile)
		if err != nil {
			return usagef("%s: %w", from, err)
		}
		o.token = text
	} else if o.token == "" {
		return nil
	}
	isVisible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(o.token) < auth.MinSecret || len(o.token) > auth.MaxToken || strings.ContainsFunc(o.token, func(r rune) bool { return !isVisible(r) }) {
		return usagef("%s: want a token of %d to %d visible ASCII characters, such as the output of openssl rand -hex 32", from, auth.MinSecret, auth.MaxToken)
	}
	if err := auth.CheckSecret([]byte(o.token)); err != nil {
		return usagef("%s: %w", from, err)
	}
	return nil
}

// loopbackToken uses the user's own token if the nodes meet on this machine and were given no token. file is its file. It is empty
// if the nodes have a token or certificates, or if other machines can reach them: then the user must give them a token.
func (o *options) loopbackToken() (file string, err error) {
	if o.token != "" || !o.meetsHere() {
		return "", nil
	}
	if o.token, file, err = auth.LoopbackToken(); err != nil {
		return "", usagef("%w: give every node the same token, as in --rdzv-token-file=token", err)
	}
	return file, nil
}

// meetsHere reports whether the nodes use a token and meet where no other machine can reach them.
func (o *options) meetsHere() bool {
	if o.backend == backendStatic {
		return rendezvous.Endpoint{Host: o.master.Addr}.IsLoopback()
	}
	return o.hosted() && o.conf["ssl_cert"] == "" && !o.exposed()
}

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
func (o *flags) missingCredentials() error {
	return usagef("%s: only who has the credentials of a job may see and steer it: give those of its nodes, as in --rdzv-token-file=token", o.given["rdzv-endpoint"])
}

const byMunge = "from the node of rank 0, by MUNGE"

// canMunge reports whether this machine has MUNGE, as those of a cluster with Slurm have.
func (o *flags) canMunge() bool { return o.host.hasProgram("munge") && o.host.hasProgram("unmunge") }

// usesMunge reports whether the nodes get their token by MUNGE.
func (o *options) usesMunge() bool { return o.inferred != nil && o.inferred.Token == byMunge }

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
	token, err := munge.Ask(ctx, job.TokenAddr(o.endpoints[0]).String(), o.runID, "", func(string) {})
	if err != nil {
		return usagef("%s: only who has the credentials of a job may see and steer it, and MUNGE gives none: %w; give those of its nodes, as in --rdzv-token-file=token", o.given["rdzv-endpoint"], err)
	}
	o.token = token
	return nil
}
