package munge

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/env/manager"
)

// socket is where the daemon listens that this process uses; nil: where munge and unmunge look for it by themselves.
var socket atomic.Pointer[string]

// socketFlag returns the flag with which munge and unmunge use the socket.
func socketFlag() []string {
	if path := socket.Load(); path != nil {
		return []string{"--socket=" + *path}
	}
	return nil
}

// Check returns why this machine's MUNGE does not work. Slurm may have a MUNGE daemon of its own, at a socket that slurm.conf names. If only
// that daemon works, this process uses it from then on.
func Check(ctx context.Context) error {
	err := try(ctx)
	if err == nil || ctx.Err() != nil || socket.Load() != nil {
		return err
	}
	path := slurmSocket(ctx) // only now: otherwise every node of every job would ask slurmctld when it starts
	if path == "" {
		return err
	}
	socket.Store(&path)
	if err = try(ctx); err != nil {
		socket.Store(nil)
	}
	return err
}

// try makes a credential and decodes it.
func try(ctx context.Context) error {
	credential, err := encode(ctx, "")
	if err == nil {
		_, err = decode(ctx, credential)
	}
	return err
}

// scontrolTime is how long scontrol may take.
const scontrolTime = 10 * time.Second

// slurmSocket returns the socket of AuthInfo in slurm.conf; empty: AuthInfo names none, or there is no Slurm.
func slurmSocket(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, scontrolTime)
	defer cancel()
	config, err := manager.SlurmConfig(ctx)
	if err != nil {
		return ""
	}
	return socketIn(config)
}

var authInfo = regexp.MustCompile(`(?m)^AuthInfo\s*=\s*(.*)$`)

// socketIn reads the socket from Slurm's settings.
func socketIn(config string) string {
	found := authInfo.FindStringSubmatch(config)
	if found == nil {
		return ""
	}
	for option := range strings.SplitSeq(found[1], ",") {
		if path, ok := strings.CutPrefix(strings.TrimSpace(option), "socket="); ok {
			return path
		}
	}
	return ""
}
