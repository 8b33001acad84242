package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// DefaultPrefix is the template of what stands before a worker's lines if Config.Prefix is nil.
const DefaultPrefix = "[${rank}] "

// localRankMacro is torchrun's: inside the user's arguments it stands for the worker's local rank.
const localRankMacro = "${local_rank}"

// Plan returns what to start on this node in a round. It is complete, and depends on the arguments only.
func Plan(c Config, round *rendezvous.Round) launcher.Spec {
	spec := c.Spec
	if spec.Logs.Dir != "" {
		spec.Logs.Dir = launcher.AttemptDir(spec.Logs.Dir, round.Restarts)
	}
	inherited := inherit(c)
	spec.Workers = nil
	for local, w := range workers(c, round) {
		environ := slices.Concat(inherited, w.Environ())
		if spec.TimerFile != "" {
			environ = append(environ, timerFile+"="+spec.TimerFile)
		}
		if c.Devices != nil {
			environ = append(environ, c.DeviceVariable+"="+c.Devices[local])
		}
		if c.MaxProcs != nil {
			environ = append(environ, "GOMAXPROCS="+strconv.Itoa(c.MaxProcs[local]))
		}
		spec.Workers = append(spec.Workers, launcher.WorkerSpec{
			Rank: w.Rank, Argv: argv(c, local), Env: environ, CPUs: of(local, c.CPUs), MemNodes: of(local, c.MemNodes),
			Prefix: prefix(c, w.RoleName, w.Rank, local), Mute: c.Show != nil && !c.Show(local),
		})
	}
	return spec
}

// argv is the command line of one worker; nil: that of all.
func argv(c Config, local int) []string {
	number, users := strconv.Itoa(local), len(c.Spec.Argv)-c.Args
	own := slices.Clone(c.Spec.Argv[:users])
	if c.LocalRankArg {
		own = append(own, "--local-rank="+number)
	}
	for _, arg := range c.Spec.Argv[users:] {
		own = append(own, strings.ReplaceAll(arg, localRankMacro, number))
	}
	if slices.Equal(own, c.Spec.Argv) {
		return nil
	}
	return own
}

func prefix(c Config, role string, rank, local int) string {
	template := DefaultPrefix
	if c.Prefix != nil {
		template = *c.Prefix
	}
	return launcher.ExpandPrefix(template, map[string]string{
		"role_name": role, "rank": strconv.Itoa(rank), "local_rank": strconv.Itoa(local)})
}

// of returns a local rank's part of a list, which may be nil.
func of(local int, list [][]int) []int {
	if list == nil {
		return nil
	}
	return list[local]
}

// errorFile names a worker's error file in an attempt; empty: there is no directory for it.
func errorFile(c Config, restarts, local int) string {
	dir := c.Spec.Logs.Dir
	if dir == "" {
		dir = c.ErrorDir
	}
	if dir == "" {
		return ""
	}
	return launcher.ErrorFile(launcher.AttemptDir(dir, restarts), local)
}
