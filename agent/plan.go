package agent

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// DefaultPrefix is the default of Config.Prefix.
const DefaultPrefix = "[${rank}] "

// localRankMacro is torchrun's. In the user's arguments, it stands for the worker's local rank.
const localRankMacro = "${local_rank}"

// Plan returns what to start on this node in a round. It depends only on its arguments.
func Plan(c Config, round *rendezvous.Round) launcher.Spec {
	spec := c.Spec
	spec.Host = c.Node.Host
	if spec.Logs.Dir != "" {
		spec.Logs.Dir = launcher.AttemptDir(spec.Logs.Dir, round.Restarts)
	}
	inherited := Inherited(c)
	spec.Workers = nil
	for local, w := range workers(c, round) {
		environ := slices.Concat(inherited, w.Environ())
		if c.Devices != nil {
			environ = append(environ, c.DeviceVariable+"="+c.Devices[local])
		}
		if c.MaxProcs != nil {
			environ = append(environ, "GOMAXPROCS="+strconv.Itoa(c.MaxProcs[local]))
		}
		if c.Shares != nil {
			environ = append(environ, sharedCPUs+"="+c.Shares[local])
		}
		spec.Workers = append(spec.Workers, launcher.WorkerSpec{
			Rank: w.Rank, Argv: argv(c, local), Env: environ, CPUs: of(local, c.CPUs), MemNodes: of(local, c.MemNodes),
			Prefix: prefix(c, w.RoleName, w.Rank, local), Mute: c.Show != nil && !c.Show[local],
		})
	}
	return spec
}

// argv returns the command line of one worker; nil: the common one.
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
	return launcher.ExpandPrefix(c.Prefix, map[string]string{
		"role_name": role, "rank": strconv.Itoa(rank), "local_rank": strconv.Itoa(local)})
}

// of returns a local rank's part of a list, which may be nil.
func of(local int, list [][]int) []int {
	if list == nil {
		return nil
	}
	return list[local]
}

// attemptDir returns the directory for the files that workers write in an attempt, such as error files; empty: there is none.
func attemptDir(c Config, restarts int) string {
	first := errorFile(c, restarts, 0)
	if first == "" {
		return ""
	}
	return filepath.Dir(filepath.Dir(first))
}

// errorFile returns the path of a worker's error file in an attempt; empty: there is no directory for it.
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

// progressFile returns the path of the file that a worker touches when it makes progress; empty: there is none.
func progressFile(c Config, local int) string {
	if c.ProgressDir == "" {
		return ""
	}
	return hang.File(c.ProgressDir, local)
}

// asyncErrorHandling is a variable that torchrun sets in addition to those of package env: the inherited value, or 1.
const asyncErrorHandling = "TORCH_NCCL_ASYNC_ERROR_HANDLING"

// workers returns the variables of this node's workers in a round, by local rank.
func workers(c Config, round *rendezvous.Round) []env.Worker {
	self, place := round.Node, round.Place
	list := make([]env.Worker, self.Nproc)
	for local := range list {
		list[local] = env.Worker{
			Rank:           place.FirstRank + local,
			WorldSize:      place.WorldSize,
			LocalRank:      local,
			LocalWorldSize: self.Nproc,
			GroupRank:      round.Self,
			GroupWorldSize: round.Size,
			RoleName:       self.Role,
			RoleRank:       place.FirstRoleRank + local,
			RoleWorldSize:  place.RoleWorldSize,
			MasterAddr:     round.Master.Addr,
			MasterPort:     round.Master.Port,
			RestartCount:   round.Restarts,
			MaxRestarts:    c.MaxRestarts,
			RunID:          c.RunID,
			ErrorFile:      errorFile(c, round.Restarts, local),
			Round:          round.ID,
			Token:          round.Token,
			TLS:            c.WorkerTLS,
			StoreAddr:      round.StoreAddr,
			ProgressFile:   progressFile(c, local),
		}
		if c.Devices != nil { // each sees one device, which is the first for it
			list[local].LocalRank = 0
		}
	}
	return list
}

// Inherited returns what workers inherit of the agent's environment, with torchrun's defaults added. It removes the
// variables that an outer gorun or torchrun set for the agent itself.
func Inherited(c Config) []string {
	drop := append(env.Names(), sharedCPUs)
	if c.Devices != nil {
		drop = append(drop, c.DeviceVariable)
	}
	out := slices.DeleteFunc(slices.Clone(c.Environ), func(kv string) bool { return slices.Contains(drop, nameOf(kv)) })
	if !slices.ContainsFunc(c.Environ, func(kv string) bool { return nameOf(kv) == asyncErrorHandling }) {
		out = append(out, asyncErrorHandling+"=1")
	}
	return out
}

// sharedCPUs is the variable that tells a worker its share of the CPUs.
const sharedCPUs = "GORUN_CPUS"

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}
