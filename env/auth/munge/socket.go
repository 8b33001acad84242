package munge

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
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

// Check returns why this machine's MUNGE does not work. A cluster may have a daemon of its own for Slurm, at a socket that slurm.conf names.
// If only that one works, this process uses it from then on.
func Check(ctx context.Context) error {
	err := try(ctx)
	if err == nil || ctx.Err() != nil || socket.Load() != nil {
		return err
	}
	path := slurmSocket(ctx) // slurmctld is not asked by every node of every job that starts
	if path == "" {
		return err
	}
	socket.Store(&path)
	if err = try(ctx); err != nil {
		socket.Store(nil)
	}
	return err
}

// try encodes and decodes.
func try(ctx context.Context) error {
	credential, err := encode(ctx, "")
	if err == nil {
		_, err = decode(ctx, credential)
	}
	return err
}

// scontrolTime is how long Slurm has to say where its daemon listens.
const scontrolTime = 10 * time.Second

// slurmSocket returns the socket of AuthInfo in slurm.conf; empty: there is none, or no Slurm.
func slurmSocket(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, scontrolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "scontrol", "show", "config")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return socketIn(string(out))
}

var authInfo = regexp.MustCompile(`(?m)^AuthInfo\s*=\s*(.*)$`)

// socketIn reads the socket from what scontrol shows.
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
