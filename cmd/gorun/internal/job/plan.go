// Package job runs this node's part of a job. A Plan has all decisions, and Run carries them out.
package job

import (
	"os"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A Plan is what follows from the command line, the environment and the machine: what this node is to run. Nothing changes it.
type Plan struct {
	Agent   agent.Config // all of it that is known before the job runs; of Spec, also what the workers read and how they write
	Program *launcher.Program

	Etcd   *rendezvous.Config      // the nodes meet over it; nil: they do not meet
	Static rendezvous.StaticConfig // if they do not. Token is what the user has given all nodes

	OwnToken bool          // the nodes use the token that this user has on this machine
	ByMunge  *manager.Task // with whose hosts the nodes share a token by MUNGE; nil: they have one, or need none

	LogDir      string // for the directories of runs; empty: a temporary one, if there are files
	EventLog    string // file; empty: none
	StatusAddr  string // host:port of the status page; empty: there is none
	HealthCheck string // command of the shell; empty: none

	StopSignals    []os.Signal   // end the job
	Timeout        time.Duration // of the job; 0: none
	ReplaceTimeout time.Duration // of a worker that lives on

	Given map[string]string // how the user gave flags, "--name=value" or "PET_NAME=value", for messages
}
