package cli

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"time"

	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// flags are what the user has said, on the command line or in the environment: the table sets each field.
type flags struct {
	host     host
	given    map[string]string // how each flag was given, "--name=value" or "PET_NAME=value"
	settings []string          // what the environment has given

	minNodes, nnodes             int // the latter at most
	spares                       int // nodes beyond that
	healthCheck                  string
	healthCooldown               time.Duration
	nproc, nodeRank, maxRestarts int
	role, localAddr, runID       string

	module, noPython, runPath bool
	python                    string // the interpreter; empty: not given
	preload                   []string
	preloadStrict             bool
	workDir                   string
	variables                 []string // of the workers, "NAME=VALUE"; later ones win
	useEnv                    bool     // false: --local-rank=R goes before the program's arguments

	standalone       bool
	backend          string
	masterAddr       string
	masterPort       int
	endpoint         string // host:port, or some of them with commas between; wins over the two before
	conf             conf
	scaleUp          string
	tokenFile, token string // the file wins
	workerTLS        bool

	onFailure                                      string
	grace, exitBarrier, maxBackoff, replaceTimeout time.Duration
	hangTimeout, timeout                           time.Duration // 0: none
	stopSignals                                    []os.Signal

	logDir                       string
	redirects, tee               launcher.StdMap
	show                         map[int]bool // local ranks that the console shows; nil: all
	stdoutFilters, stderrFilters []string
	prefix                       string
	timestamps                   bool
	pty                          string
	noStdin                      bool
	logMaxSize                   int64
	logKeep                      int
	eventLog                     string // file; empty: none
	statusAddr                   string // host:port of the status page; empty: there is none

	numa             string // a policy of package topology; empty: no binding
	threads          int    // OMP_NUM_THREADS; 0: not asked for
	virtualLocalRank bool

	dryRun, json bool
}

// options are the flags of a command, checked and completed with what follows from them: a flag that nobody has given may follow from
// another one, or from what a resource manager says.
type options struct {
	flags
	outside    bool                  // of a command about a running job, which is not a node of it
	startDir   string                // where gorun was started; empty: where it is now
	endpoints  []rendezvous.Endpoint // of etcd's members
	master     rendezvous.Master     // empty: up to the rendezvous
	overridden []string              // flags that --standalone makes meaningless
	task       *manager.Task         // what a resource manager says of this process; nil: there is none, or it does not matter
	inferred   *inferred             // what follows from task; nil: nothing
	notes      []string              // what the user should know about task
}

// autoThreads stands for each worker's share of the cores.
const autoThreads = -1

// teePrefix is torchrun's prefix for teed lines, which its users' tools expect.
const teePrefix = "[${role_name}${local_rank}]:"

// defaults are the flags of somebody who has given none.
func defaults(h host) *flags {
	o := &flags{host: h, given: make(map[string]string)}
	for i := range table {
		if f := &table[i]; f.def != "" {
			_ = f.set(o, f.def) // no default is wrong: a test sets them all
		}
	}
	return o
}

// check checks that the flags are compatible, and sets what follows from them.
func (o *options) check() error {
	if err := o.checkProgram(); err != nil {
		return err
	}
	if o.json && !o.dryRun {
		return usagef("%s: --json needs --dry-run", o.given["json"])
	}
	if o.logKeep > 0 && o.logMaxSize == 0 {
		return usagef("%s: has no effect without --log-max-size", o.given["log-keep"])
	}
	if o.isSet("health-cooldown") && o.healthCheck == "" {
		return usagef("%s: has no effect without --health-check", o.given["health-cooldown"])
	}
	if _, given := o.given["log-line-prefix"]; !given && o.tee.IsUsed() {
		o.prefix = teePrefix
	}
	if _, err := manager.FindKillLimit(o.host.lookup, false); err != nil {
		return usagef("%w", err)
	}
	if err := o.loadToken(); err != nil {
		return err
	}
	if err := o.askManager(); err != nil {
		return err
	}
	if err := o.checkReplace(); err != nil {
		return err
	}
	return o.completeRendezvous()
}

func (o *flags) checkProgram() error {
	for _, other := range []struct {
		name string
		on   bool
	}{{"no-python", o.noPython}, {"run-path", o.runPath}} {
		if o.module && other.on {
			return usagef("%s and %s: leave out one of them", o.given["module"], o.given[other.name])
		}
	}
	if _, set := o.variable(numThreads); set && o.threads != 0 {
		return usagef("%s and %s for the workers: leave out one of them", o.given["omp-num-threads"], numThreads)
	}
	return nil
}

func randomID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// What follows the failure of a worker.
const (
	restartAll    = "restart"
	replaceFailed = "replace"
)

var onFailures = []string{restartAll, replaceFailed}

// checkReplace checks what goes with --on-failure.
func (o *flags) checkReplace() error {
	timeout, given := o.given["replace-timeout"]
	replaces := o.onFailure == replaceFailed
	switch {
	case given && !replaces:
		return usagef("%s: has no effect without --on-failure=%s", timeout, replaceFailed)
	case o.replaceTimeout <= 0:
		return usagef("%s: want more than 0 seconds", timeout)
	case replaces && o.nnodes > 1 && !o.elastic():
		return usagef("%s: static nodes do not learn that a worker of another node has failed: have the nodes meet over an etcd, "+
			"as with --rdzv-backend=embedded --rdzv-endpoint=node0:%d", o.given["on-failure"], rendezvous.EmbeddedPort)
	}
	return nil
}
