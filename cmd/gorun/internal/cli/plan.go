package cli

import (
	"cmp"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// plan returns what this node is to run. It finds the program, and starts nothing.
func (o *options) plan(command []string, stdout, stderr *os.File) (*job.Plan, error) {
	program, err := o.find(command)
	if err != nil {
		return nil, err
	}
	procs, err := o.processors()
	if err != nil {
		return nil, err
	}
	preload, err := o.preloads(program)
	if err != nil {
		return nil, err
	}
	p := &job.Plan{
		Agent: agent.Config{
			Program: command[0], Python: program.Interpreter(), RunID: o.runID, Node: o.node(), MaxRestarts: o.maxRestarts, WorkerTLS: o.workerTLS,
			ReportTimeout: o.joinTimeout(), ExitBarrier: o.exitBarrier, MaxBackoff: o.maxBackoff,
			HangTimeout: o.hangTimeout, Cooldown: o.healthCooldown,
			Environ: o.environ(os.Environ(), procs.threads), Prefix: o.prefix, Show: o.show,
			Args: len(command) - 1, LocalRankArg: !o.useEnv,
			MaxProcs: procs.maxProcs, Shares: procs.shares,
			Devices: procs.devices.Names, DeviceVariable: procs.devices.Variable,
			ErrorFile: o.path(os.Getenv("TORCHELASTIC_ERROR_FILE")),
			Status:    status.Node{Gorun: version, Pid: os.Getpid(), Endpoint: o.meetingPoint()},
			Spec: launcher.Spec{
				Argv: program.Argv, Grace: o.grace, Apart: o.onFailure == replaceFailed, Preload: preload,
				Stdin: o.input(), Raw: !isUTF8(o.host.lookup), Timestamps: o.timestamps,
				Color: wantsColor(stdout) && wantsColor(stderr), Live: isTerminal(stdout) && isTerminal(stderr),
				Pty: o.ptyFor(isTerminal(stdout), program.Python),
				Logs: launcher.LogSpec{
					Redirect: o.redirects, Tee: o.tee, Discard: o.logDir == os.DevNull,
					StdoutFilters: o.stdoutFilters, StderrFilters: o.stderrFilters,
					MaxSize: o.logMaxSize, Keep: o.logKeep,
				},
			},
		},
		Program: program, LogDir: o.path(o.logDir), EventLog: o.path(o.eventLog), StatusAddr: o.statusAddr, HealthCheck: o.healthCheck,
		StopSignals: o.stopSignals, Timeout: o.timeout, ReplaceTimeout: o.replaceTimeout, Given: o.given,
		Static: rendezvous.StaticConfig{
			Nodes: o.nnodes, NodeRank: o.nodeRank, Master: o.master, Token: o.token, MaxRestarts: o.maxRestarts,
		},
		OwnToken: o.nnodes > 1 && o.token == "" && o.meetsHere(),
	}
	for _, b := range procs.bindings {
		p.Agent.CPUs, p.Agent.MemNodes = append(p.Agent.CPUs, b.CPUs), append(p.Agent.MemNodes, b.Nodes)
	}
	if manager.SignalsAll(o.host.lookup) {
		for _, s := range job.Unignored(o.stopSignals) {
			p.Agent.Spec.StepSignals = append(p.Agent.Spec.StepSignals, s.(syscall.Signal))
		}
	}
	if o.elastic() {
		c := o.etcdConfig()
		p.Etcd, p.Agent.Lease = &c, c.Lease
		if o.usesMunge() {
			p.ByMunge = o.task
		}
	}
	return p, nil
}

// warn logs warnings about the options, and about the program and its arguments.
func (o *options) warn(logger *slog.Logger, command []string, node launchedNode) {
	for _, w := range o.warnings(os.Environ()) {
		logger.Warn(w)
	}
	if w := o.misplaced(command); w != "" && node.host == "" { // gorun launch has said it
		logger.Warn(w)
	}
}

// warnings returns warnings about options that have no effect or are unsafe.
func (o *options) warnings(environ []string) (list []string) {
	if len(o.overridden) > 0 {
		list = append(list, "--standalone overrides "+strings.Join(o.overridden, ", "))
	}
	if _, given := o.given["master-addr"]; given && o.elastic() {
		list = append(list, o.given["master-addr"]+" has no effect: if nodes meet over etcd, the node of rank 0 announces its own address (--local-addr)")
	}
	if o.onlyHere() {
		list = append(list, "no other machine reaches node 0 at "+o.master.Addr+": if nodes are on other machines, give each --master-addr=HOST, the name or address of node 0's machine")
	}
	if o.workerTLS && o.nnodes == 1 {
		list = append(list, o.given["worker-tls"]+" has no effect: the job has one node, and its workers send each other nothing over a network")
	}
	if o.elastic() && !o.encrypted() && o.exposed() {
		list = append(list, "connections to the etcd at "+o.endpoint+" are not encrypted: anybody who can read the network can take part in the job; "+
			"use --rdzv-conf=protocol=https, or gorun etcd with a token")
	}
	limit, _ := manager.FindKillLimit(o.host.lookup, false) // the variables have been checked
	if late := limit.TooLate(o.grace, o.given["shutdown-timeout"]); late != "" {
		list = append(list, late)
	}
	if o.logDir == os.DevNull && len(o.stdoutFilters)+len(o.stderrFilters) > 0 {
		list = append(list, "filtered lines are not written to files, since --log-dir is "+os.DevNull)
	}
	return append(list, unknownVariables(environ)...)
}

// preloads returns what the workers of a program find imported; nil: nothing.
func (o *options) preloads(program *launcher.Program) (*launcher.Preload, error) {
	if o.preload == nil && o.preloadStrict {
		return nil, usagef("%s has no effect without --preload", o.given["preload-strict"])
	}
	if o.preload == nil {
		return nil, nil
	}
	if err := program.CheckPreload(o.preload); err != nil {
		return nil, usagef("%w", err)
	}
	return &launcher.Preload{Modules: o.preload, Strict: o.preloadStrict}, nil
}

// find finds the program. It builds nothing.
func (o *flags) find(command []string) (*launcher.Program, error) {
	named, _ := o.host.lookup("PYTHON_EXEC")
	python := launcher.Python(cmp.Or(o.python, named))
	resolve := python.Resolve
	switch {
	case o.runPath:
		resolve = python.ResolveRunPath
	case o.module:
		return python.ResolveModule(command[0], command[1:])
	case o.noPython:
		resolve = launcher.ResolveExecutable
	}
	program, err := resolve(command[0], command[1:])
	return program, suggestProgram(err)
}
