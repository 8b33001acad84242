package cli

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// options is what flags and environment ask for.
type options struct {
	host  host
	given map[string]string // how each flag was given, "--name=value" or "PET_NAME=value"

	nnodes, nproc, nodeRank, maxRestarts int
	role, localAddr, runID               string

	module, noPython, runPath bool
	useEnv                    bool // false: --local-rank=R goes before the program's arguments

	standalone       bool
	backend          string
	masterAddr       string
	masterPort       int
	endpoint         rendezvous.Master // wins over the two before
	confRank         *int              // of --rdzv-conf
	tokenFile, token string            // the file wins
	master           rendezvous.Master // what follows from the above; empty: up to the rendezvous
	overridden       []string          // flags that --standalone makes meaningless

	grace, exitBarrier time.Duration
	stopSignals        []os.Signal

	logDir                       string
	redirects, tee               launcher.StdMap
	show                         map[int]bool // local ranks that the console shows; nil: all
	stdoutFilters, stderrFilters []string
	prefix                       string
	logMaxSize                   int64
	logKeep                      int
	events                       string

	numa             string // a policy of package topology; empty: no binding
	threads          int    // OMP_NUM_THREADS; 0: not asked for
	virtualLocalRank bool

	dryRun, json bool
}

// autoThreads asks for each worker's share of the cores.
const autoThreads = -1

func defaults(h host) *options {
	return &options{
		host: h, given: make(map[string]string),
		nnodes: 1, nproc: 1, role: "default", useEnv: true, backend: "static",
		grace: 30 * time.Second, exitBarrier: 300 * time.Second, stopSignals: stopSignals,
		prefix: agent.DefaultPrefix, events: "null",
	}
}

// defaultPort is torchrun's, for several nodes that cannot agree on one otherwise.
const defaultPort = 29500

// check holds the flags against each other, and settles what follows from them.
func (o *options) check() error {
	if err := o.checkProgram(); err != nil {
		return err
	}
	if o.json && !o.dryRun {
		return usagef("%s: it goes with --dry-run", o.given["json"])
	}
	if o.logKeep > 0 && o.logMaxSize == 0 {
		return usagef("%s: nothing is put aside without --log-max-size", o.given["log-keep"])
	}
	if err := o.checkRendezvous(); err != nil {
		return err
	}
	return o.loadToken()
}

func (o *options) checkProgram() error {
	for _, other := range []struct {
		name string
		on   bool
	}{{"no-python", o.noPython}, {"run-path", o.runPath}} {
		if o.module && other.on {
			return usagef("%s and %s: a program is a module or it is not; leave one out", o.given["module"], o.given[other.name])
		}
	}
	return nil
}

func (o *options) checkRendezvous() error {
	if o.standalone {
		if o.nnodes > 1 {
			return usagef("%s: --standalone is for one node", o.given["nnodes"])
		}
		o.standAlone()
	}
	if o.backend != "static" && o.nnodes > 1 {
		return usagef("%s: with several nodes this version has no backend but static: give --master-addr and --node-rank", o.given["rdzv-backend"])
	}
	if err := o.checkNodeRank(); err != nil {
		return err
	}
	if o.nnodes == 1 {
		o.settleOne()
		return nil
	}
	return o.settleSeveral()
}

// settleOne: one node meets nobody, so that an endpoint matters only where it says the master's address.
func (o *options) settleOne() {
	o.master = rendezvous.Master{Addr: o.masterAddr, Port: o.masterPort}
	if o.endpoint.Addr != "" && o.backend == "static" {
		o.master = o.endpoint
	}
	if o.master.Addr == "" {
		o.master.Addr = o.localAddr
	}
	if o.runID == "" {
		o.runID = randomID()
	}
}

func (o *options) settleSeveral() error {
	o.master = rendezvous.Master{Addr: o.masterAddr, Port: o.masterPort}
	if o.endpoint.Addr != "" {
		o.master = o.endpoint
	}
	if o.master.Addr == "" {
		return usagef("%s: where is node 0? Say it on every node, as in --master-addr=node0 --master-port=%d", o.given["nnodes"], defaultPort)
	}
	if o.master.Port == 0 {
		o.master.Port = defaultPort
	}
	if o.runID == "" {
		o.runID = "none"
	}
	return nil
}

func (o *options) checkNodeRank() error {
	from := "node-rank"
	if _, given := o.given[from]; !given && o.confRank != nil {
		o.nodeRank, from = *o.confRank, "rdzv-conf"
	}
	if o.nodeRank >= o.nnodes {
		return usagef("%s: node ranks are 0 to %d, since --nnodes is %d", o.given[from], o.nnodes-1, o.nnodes)
	}
	return nil
}

// standAlone drops what standalone overrides, as torchrun does.
func (o *options) standAlone() {
	for _, name := range []string{"rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"} {
		if _, given := o.given[name]; given {
			o.overridden = append(o.overridden, "--"+name)
		}
	}
	o.backend, o.endpoint, o.runID, o.confRank = "static", rendezvous.Master{}, "", nil
}

func randomID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
