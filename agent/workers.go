package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// What torchrun sets beside the contract of package env.
const (
	asyncErrorHandling = "TORCH_NCCL_ASYNC_ERROR_HANDLING" // inherited, or 1
	numThreads         = "OMP_NUM_THREADS"                 // inherited, or 1 if the node has several workers
)

// workers returns this node's workers in a round, by local rank. dir is the log directory of the attempt, or empty.
func workers(c Config, round *rendezvous.Round, restarts int, dir string) []launcher.WorkerSpec {
	self, place := round.Nodes[round.Self], rendezvous.Assign(round.Nodes)[round.Self]
	inherited := inherit(c.Environ, self.Nproc)
	specs := make([]launcher.WorkerSpec, self.Nproc)
	for local := range specs {
		w := env.Worker{
			Rank:           place.FirstRank + local,
			WorldSize:      place.WorldSize,
			LocalRank:      local,
			LocalWorldSize: self.Nproc,
			GroupRank:      round.Self,
			GroupWorldSize: len(round.Nodes),
			RoleName:       self.Role,
			RoleRank:       place.FirstRoleRank + local,
			RoleWorldSize:  place.RoleWorldSize,
			MasterAddr:     round.Master.Addr,
			MasterPort:     round.Master.Port,
			RestartCount:   restarts,
			MaxRestarts:    c.MaxRestarts,
			RunID:          c.RunID,
			Round:          round.ID,
			Token:          round.Token,
			StoreAddr:      round.StoreAddr,
		}
		if dir != "" {
			w.ErrorFile = launcher.ErrorFile(dir, local)
		}
		specs[local] = launcher.WorkerSpec{Rank: w.Rank, Prefix: fmt.Sprintf("[%d] ", w.Rank), Env: slices.Concat(inherited, w.Environ())}
	}
	return specs
}

// inherit is what workers keep of the agent's environment, with torchrun's defaults added. What an outer gorun or
// torchrun said to the agent about itself is not for its workers.
func inherit(environ []string, nproc int) []string {
	drop := make(map[string]bool)
	for _, kv := range (env.Worker{}).Environ() {
		drop[nameOf(kv)] = true
	}
	var out []string
	for _, kv := range environ {
		if name := nameOf(kv); !drop[name] && !strings.HasPrefix(name, "GORUN_") {
			out = append(out, kv)
		}
	}
	if !isSet(environ, asyncErrorHandling) {
		out = append(out, asyncErrorHandling+"=1")
	}
	if limitsThreads(environ, nproc) {
		out = append(out, numThreads+"=1")
	}
	return out
}

// limitsThreads: several workers that each start a thread per core slow one another down.
func limitsThreads(environ []string, nproc int) bool { return nproc > 1 && !isSet(environ, numThreads) }

// noticeThreads says so once.
func noticeThreads(c Config) {
	if limitsThreads(c.Environ, c.Node.Nproc) {
		c.Logger.Warn(numThreads + " is not set: it is 1 for every worker; set it to choose")
	}
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

func isSet(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(kv string) bool { return nameOf(kv) == name })
}
