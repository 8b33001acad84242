package cli

import "time"

const (
	groupNodes      = "Nodes and workers"
	groupProgram    = "The program"
	groupRendezvous = "Rendezvous"
	groupStopping   = "Failures and stopping"
	groupOutput     = "Output"
	groupProcessors = "Processors and devices"
	groupView       = "Looking before starting"
)

// table is every flag of gorun, in the order of the help.
var table = []flag{
	{group: groupNodes, name: "nnodes", value: "N", help: "nodes of the job: a number, or MIN:MAX for one that goes on with fewer and takes more (1)", set: setNnodes},
	{group: groupNodes, name: "nproc-per-node", value: "N", choices: procKinds, set: setNproc,
		help: "workers on this node: a number; cpu (one for each CPU that this process may use); gpu or xpu (one for each such device); " +
			"auto (one for each device, or else for each CPU) (1)"},
	{group: groupNodes, name: "node-rank", value: "R", help: "number of this node, from 0; a wish, where nodes meet over etcd (0; none)",
		set: setNumber(0, maxNodes-1, func(o *options) *int { return &o.nodeRank })},
	{group: groupNodes, name: "role", value: "NAME", help: "role of this node's workers (default)",
		set: orEmpty(setText("a name", func(o *options) *string { return &o.role }))},
	{group: groupNodes, name: "local-addr", value: "ADDR", alias: commAddr, set: orEmpty(setLocalAddr),
		help: "address by which others reach this node, and its workers that use package comm: a name, an address, a prefix such as 10.1.0.0/16 in which it lies, " +
			"or an interface (its host name; where nodes meet over etcd, the address by which it reaches that)"},

	{group: groupProgram, name: "module", short: "m", help: "program is a Python module, run as python -u -m program",
		set: setSwitch(func(o *options) *bool { return &o.module })},
	{group: groupProgram, name: "no-python", help: "program is an executable, whatever its name",
		set: setSwitch(func(o *options) *bool { return &o.noPython })},
	{group: groupProgram, name: "run-path", help: "program is a Python script, run by runpy.run_path",
		set: setSwitch(func(o *options) *bool { return &o.runPath })},
	{group: groupProgram, name: "use-env", own: true, set: setSwitch(func(o *options) *bool { return &o.useEnv }),
		help: "as torch.distributed.launch has it; --use-env=0 gives each worker --local-rank=R as its first argument (1)"},

	{group: groupRendezvous, name: "standalone", help: "one node, and nothing that another job could share",
		set: setSwitch(func(o *options) *bool { return &o.standalone })},
	{group: groupRendezvous, name: "master-addr", value: "HOST", help: "address of node 0 (127.0.0.1 for one node)",
		set: setHost(func(o *options) *string { return &o.masterAddr })},
	{group: groupRendezvous, name: "master-port", value: "PORT", help: "free port where rank 0 is (any; for static nodes 29500)",
		set: setNumber(0, maxPort, func(o *options) *int { return &o.masterPort })},
	{group: groupRendezvous, name: "rdzv-endpoint", value: "HOST:PORT", set: orEmpty(setEndpoint),
		help: "where nodes meet: the etcd, or one of the nodes that is to host it, or three of them with commas between, of which any one " +
			"may fail; for static: the master's address and port in one"},
	{group: groupRendezvous, name: "rdzv-backend", value: "NAME", choices: backends,
		help: "how several nodes meet: static (they are told who they are); embedded or c10d (over an etcd that one of them hosts); " +
			"etcd, etcd-v2 or etcd-v3 (over one that runs by itself) (static)",
		set: setChoice(backends, func(o *options) *string { return &o.backend })},
	{group: groupRendezvous, name: "rdzv-id", value: "ID", help: "name of the job, the same on every node (random for one node, otherwise none)",
		set: orEmpty(setText("a name", func(o *options) *string { return &o.runID }))},
	{group: groupRendezvous, name: "rdzv-conf", value: "K=V,...", set: setConf,
		help: "settings of the backend: join_timeout, last_call_timeout, keep_alive_interval, keep_alive_max_attempt or ttl, is_host, " +
			"protocol, ca_cert, ssl_cert, ssl_cert_key, username, password_file, etcd_prefix, after_end; for static: rank=R; seconds and PEM files"},
	{group: groupRendezvous, name: "scale-up", value: "WHEN", choices: scaleUps, own: true, set: setChoice(scaleUps, func(o *options) *string { return &o.scaleUp }),
		help: "when a job with room takes nodes that come late: immediate, on-restart (with the next round), or never (but for lost ones) (immediate)"},
	{group: groupRendezvous, name: "worker-tls", own: true, set: setSwitch(func(o *options) *bool { return &o.workerTLS }),
		help: "workers that use package comm encrypt what they send from machine to machine"},
	{group: groupRendezvous, name: "rdzv-token-file", value: "FILE", own: true, set: setText("a file name", func(o *options) *string { return &o.tokenFile }),
		help: "several nodes: file with a secret, the same on every node, by which nodes and workers know each other ($GORUN_TOKEN; on loopback one of this user's)"},

	{group: groupStopping, name: "max-restarts", value: "N", help: "how often all workers are started again after a failure (0)",
		set: setNumber(0, maxRestarts, func(o *options) *int { return &o.maxRestarts })},
	{group: groupStopping, name: "max-restart-backoff", value: "SECONDS", own: true,
		set:  setSeconds(func(o *options) *time.Duration { return &o.maxBackoff }),
		help: "longest wait before workers that fail again and again are started again: from 0.1 s on it doubles each time; 0: no wait (10)"},
	{group: groupStopping, name: "shutdown-timeout", value: "SECONDS", alias: "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
		set:  setSeconds(func(o *options) *time.Duration { return &o.grace }),
		help: "time that workers have to stop before they are killed (30)"},
	{group: groupStopping, name: "signals-to-handle", value: "SIG,...", choices: signalChoices, set: setSignals,
		help: "signals to gorun that stop the workers (SIGTERM,SIGINT,SIGHUP,SIGQUIT)"},
	{group: groupStopping, name: "exit-barrier-timeout", value: "SECONDS", own: true, alias: "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
		set:  setSeconds(func(o *options) *time.Duration { return &o.exitBarrier }),
		help: "how long a node whose workers are done waits for the others; static nodes do not wait (300)"},
	{group: groupStopping, name: "monitor-interval", value: "SECONDS", set: setInterval,
		help: "accepted for torchrun; exits are noticed at once"},
	{group: groupStopping, name: "start-method", value: "NAME", choices: startMethods,
		set:  setChoice(startMethods, func(*options) *string { return new(string) }),
		help: "accepted for torchrun: spawn, fork or forkserver"},

	{group: groupOutput, name: "log-dir", value: "DIR", help: "directory for log files; /dev/null: none, and redirected streams are dropped",
		set: orEmpty(setText("a directory", func(o *options) *string { return &o.logDir }))},
	{group: groupOutput, name: "redirects", short: "r", value: "STD", choices: stdChoices, set: setRedirects,
		help: "streams that go to files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank, as 0:3,1:2 (0)"},
	{group: groupOutput, name: "tee", short: "t", value: "STD", choices: stdChoices, set: setTee,
		help: "streams that go to files and to the console; as --redirects (0)"},
	{group: groupOutput, name: "local-ranks-filter", value: "R,...", set: orEmpty(setLocalRanks),
		help: "the console shows these local ranks only; files keep all"},
	{group: groupOutput, name: "duplicate-stdout-filters", value: "TEXT,...",
		set:  setFilters(func(o *options) *[]string { return &o.stdoutFilters }),
		help: "lines on stdout with one of these texts go to filtered_stdout.log as well; ,, is a comma"},
	{group: groupOutput, name: "duplicate-stderr-filters", value: "TEXT,...",
		set:  setFilters(func(o *options) *[]string { return &o.stderrFilters }),
		help: "the same of stderr"},
	{group: groupOutput, name: "log-line-prefix", value: "TEMPLATE", own: true, alias: "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
		set:  func(o *options, s string) error { o.prefix = s; return nil },
		help: "what stands before each line on the console, with ${role_name}, ${rank} and ${local_rank} ([${rank}] ; with --tee, as torchrun has it, [${role_name}${local_rank}]:)"},
	{group: groupOutput, name: "log-max-size", value: "BYTES", own: true, set: setSize(func(o *options) *int64 { return &o.logMaxSize }),
		help: "size at which a log file is put aside and a new one begun, such as 100M (no limit)"},
	{group: groupOutput, name: "log-keep", value: "N", own: true, set: setNumber(1, maxRestarts, func(o *options) *int { return &o.logKeep }),
		help: "how many of the files put aside are kept, for each stream (all)"},
	{group: groupOutput, name: "logs-specs", value: "NAME", choices: logsSpecs, set: setChoice(logsSpecs, func(*options) *string { return new(string) }),
		help: "accepted for torchrun: default; there are no plugins"},
	{group: groupOutput, name: "event-log-handler", value: "NAME", choices: eventHandlers,
		set:  setChoice(eventHandlers, func(o *options) *string { return &o.events }),
		help: "where a line of JSON goes for each worker that has ended: null or console (null)"},

	{group: groupProcessors, name: "numa-binding", value: "NAME", choices: numaPolicies, set: setChoice(numaPolicies, func(o *options) *string { return &o.numa }),
		help: "bind each worker to the processors of its NUMA node (node) or socket (socket), to its share of the node's cores (exclusive), " +
			"to one group of cores with a common cache (core-complex), to nothing (none), or, if there are several and cores for all, to its share " +
			"of the cores, but not of the memory (auto)"},
	{group: groupProcessors, name: "omp-num-threads", value: "N", choices: []string{"auto"}, own: true, set: setThreads,
		help: "OMP_NUM_THREADS of the workers: a number, or auto: each worker's share of the cores (what is inherited; or 1 if there are several)"},
	{group: groupProcessors, name: "virtual-local-rank", set: setSwitch(func(o *options) *bool { return &o.virtualLocalRank }),
		help: "every worker has LOCAL_RANK 0, and sees the device of its local rank only"},

	{group: groupView, name: "dry-run", own: true, set: setSwitch(func(o *options) *bool { return &o.dryRun }),
		help: "print what would be started on this node, and start nothing"},
	{group: groupView, name: "json", own: true, set: setSwitch(func(o *options) *bool { return &o.json }),
		help: "with --dry-run: as JSON"},
}
