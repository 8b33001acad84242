package agent

import (
	"slices"
	"strings"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/rendezvous"
)

// asyncErrorHandling is what torchrun sets beside the contract of package env: inherited, or 1.
const asyncErrorHandling = "TORCH_NCCL_ASYNC_ERROR_HANDLING"

// timerFile tells workers of Config.Spec.TimerFile, as torchrun does.
const timerFile = "TORCHELASTIC_TIMER_FILE"

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
		}
		if c.Devices != nil { // each sees one device, which is the first for it
			list[local].LocalRank = 0
		}
	}
	return list
}

// inherit is what workers keep of the agent's environment, with torchrun's defaults added. What an outer gorun or
// torchrun said to the agent about itself is not for its workers.
func inherit(c Config) []string {
	drop := make(map[string]bool)
	for _, kv := range (env.Worker{}).Environ() {
		drop[nameOf(kv)] = true
	}
	if c.Devices != nil {
		drop[c.DeviceVariable] = true
	}
	if c.Spec.TimerFile != "" {
		drop[timerFile] = true
	}
	var out []string
	for _, kv := range c.Environ {
		if !drop[nameOf(kv)] {
			out = append(out, kv)
		}
	}
	if !isSet(c.Environ, asyncErrorHandling) {
		out = append(out, asyncErrorHandling+"=1")
	}
	return out
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

func isSet(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(kv string) bool { return nameOf(kv) == name })
}
