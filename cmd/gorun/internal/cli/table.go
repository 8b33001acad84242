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
	{group: groupNodes, name: "nnodes", value: "N", help: "number of nodes: N, or MIN:MAX if nodes may come and go (1)", set: setNnodes},
	{group: groupNodes, name: "nproc-per-node", value: "N", choices: procKinds, set: setNproc,
		help: "workers on this node: a number; cpu: one for each CPU that gorun may use; gpu or xpu: one for each such device; " +
			"auto: one for each device, or for each CPU if there is no device (1)"},
	{group: groupNodes, name: "node-rank", value: "R", help: "number of this node, from 0; where nodes meet over etcd, the number that you would like it to have (0; none)",
		set: setNumber(0, maxNodes-1, func(o *options) *int { return &o.nodeRank })},
	{group: groupNodes, name: "role", value: "NAME", help: "role of this node's workers (default)",
		set: orEmpty(setText("a name", func(o *options) *string { return &o.role }))},
	{group: groupNodes, name: "local-addr", value: "ADDR", alias: commAddr, set: orEmpty(setLocalAddr),
		help: "address at which the other nodes reach this node and its workers that use package comm: a name, an IP address, " +
			"a prefix such as 10.1.0.0/16 in which it lies, or an interface (its host name; over etcd, the address on the way to it)"},

	{group: groupProgram, name: "module", short: "m", help: "run the program as a Python module: python -u -m program",
		set: setSwitch(func(o *options) *bool { return &o.module })},
	{group: groupProgram, name: "no-python", help: "the program is an executable, whatever its name",
		set: setSwitch(func(o *options) *bool { return &o.noPython })},
	{group: groupProgram, name: "run-path", help: "the program is a Python script, to be run by runpy.run_path",
		set: setSwitch(func(o *options) *bool { return &o.runPath })},
	{group: groupProgram, name: "use-env", own: true, set: setSwitch(func(o *options) *bool { return &o.useEnv }),
		help: "as in torch.distributed.launch; --use-env=0 gives each worker --local-rank=R as its first argument (1)"},

	{group: groupRendezvous, name: "standalone", help: "run on one node, and share nothing with any other job",
		set: setSwitch(func(o *options) *bool { return &o.standalone })},
	{group: groupRendezvous, name: "master-addr", value: "HOST", help: "address of node 0 (127.0.0.1 for one node)",
		set: setHost(func(o *options) *string { return &o.masterAddr })},
	{group: groupRendezvous, name: "master-port", value: "PORT", help: "free port on which rank 0 listens (any; for static nodes 29500)",
		set: setNumber(0, maxPort, func(o *options) *int { return &o.masterPort })},
	{group: groupRendezvous, name: "rdzv-endpoint", value: "HOST:PORT", set: orEmpty(setEndpoint),
		help: "where the nodes meet: your etcd, or the node that is to host one, or three such nodes separated by commas, " +
			"of which one may fail; for static: the master's address and port in one"},
	{group: groupRendezvous, name: "rdzv-backend", value: "NAME", choices: backends,
		help: "how several nodes meet: static (you number them by --node-rank); embedded or c10d (over an etcd that one of them hosts); " +
			"etcd, etcd-v2 or etcd-v3 (over an etcd of yours) (static)",
		set: setChoice(backends, func(o *options) *string { return &o.backend })},
	{group: groupRendezvous, name: "rdzv-id", value: "ID", help: "name of the job, the same on every node (random for one node, otherwise none)",
		set: orEmpty(setText("a name", func(o *options) *string { return &o.runID }))},
	{group: groupRendezvous, name: "rdzv-conf", value: "K=V,...", set: setConf,
		help: "settings of the rendezvous: join_timeout, last_call_timeout, keep_alive_interval, keep_alive_max_attempt or ttl, is_host, " +
			"protocol, ca_cert, ssl_cert, ssl_cert_key, username, password_file, etcd_prefix, after_end; for static: rank=R. " +
			"Times are in seconds, certificates in PEM files"},
	{group: groupRendezvous, name: "scale-up", value: "WHEN", choices: scaleUps, own: true, set: setChoice(scaleUps, func(o *options) *string { return &o.scaleUp }),
		help: "when the job takes nodes that come late: immediate, on-restart (with the next round), or never (only in the place of a lost node) (immediate)"},
	{group: groupRendezvous, name: "worker-tls", own: true, set: setSwitch(func(o *options) *bool { return &o.workerTLS }),
		help: "encrypt what workers that use package comm send from machine to machine"},
	{group: groupRendezvous, name: "rdzv-token-file", value: "FILE", own: true, set: setText("a file name", func(o *options) *string { return &o.tokenFile }),
		help: "for several nodes: file with the secret by which nodes and workers know each other, the same on every node " +
			"($GORUN_TOKEN; on loopback a file that gorun makes for you)"},

	{group: groupStopping, name: "max-restarts", value: "N", help: "how often gorun starts all workers again after a failure (0)",
		set: setNumber(0, maxRestarts, func(o *options) *int { return &o.maxRestarts })},
	{group: groupStopping, name: "max-restart-backoff", value: "SECONDS", own: true,
		set:  setSeconds(func(o *options) *time.Duration { return &o.maxBackoff }),
		help: "longest wait before gorun starts workers again that keep failing: the wait begins at 0.1 s and doubles each time; 0: no wait (10)"},
	{group: groupStopping, name: "shutdown-timeout", value: "SECONDS", alias: "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
		set:  setSeconds(func(o *options) *time.Duration { return &o.grace }),
		help: "time that workers have to stop before gorun kills them (30)"},
	{group: groupStopping, name: "signals-to-handle", value: "SIG,...", choices: signalChoices, set: setSignals,
		help: "signals on which gorun stops the workers (SIGTERM,SIGINT,SIGHUP,SIGQUIT)"},
	{group: groupStopping, name: "exit-barrier-timeout", value: "SECONDS", own: true, alias: "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
		set:  setSeconds(func(o *options) *time.Duration { return &o.exitBarrier }),
		help: "how long a node whose workers are done waits for the other nodes; static nodes do not wait (300)"},
	{group: groupStopping, name: "monitor-interval", value: "SECONDS", set: setInterval,
		help: "accepted for torchrun, without effect: gorun notices exits at once"},
	{group: groupStopping, name: "start-method", value: "NAME", choices: startMethods,
		set:  setChoice(startMethods, func(*options) *string { return new(string) }),
		help: "accepted for torchrun, without effect: spawn, fork or forkserver"},

	{group: groupOutput, name: "log-dir", value: "DIR", help: "directory for log files; /dev/null: no files, and gorun drops redirected streams",
		set: orEmpty(setText("a directory", func(o *options) *string { return &o.logDir }))},
	{group: groupOutput, name: "redirects", short: "r", value: "STD", choices: stdChoices, set: setRedirects,
		help: "streams that go to files instead of the console: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank, as in 0:3,1:2 (0)"},
	{group: groupOutput, name: "tee", short: "t", value: "STD", choices: stdChoices, set: setTee,
		help: "streams that go to files and to the console; values as for --redirects (0)"},
	{group: groupOutput, name: "local-ranks-filter", value: "R,...", set: orEmpty(setLocalRanks),
		help: "show only these local ranks on the console; log files keep all"},
	{group: groupOutput, name: "duplicate-stdout-filters", value: "TEXT,...",
		set:  setFilters(func(o *options) *[]string { return &o.stdoutFilters }),
		help: "copy lines of stdout that contain one of these texts to filtered_stdout.log; write ,, for a comma in a text"},
	{group: groupOutput, name: "duplicate-stderr-filters", value: "TEXT,...",
		set:  setFilters(func(o *options) *[]string { return &o.stderrFilters }),
		help: "the same for stderr, to filtered_stderr.log"},
	{group: groupOutput, name: "log-line-prefix", value: "TEMPLATE", own: true, alias: "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
		set: func(o *options, s string) error { o.prefix = s; return nil },
		help: "what each line on the console begins with; it may contain ${role_name}, ${rank} and ${local_rank} " +
			"([${rank}] ; with --tee, as torchrun has it, [${role_name}${local_rank}]:)"},
	{group: groupOutput, name: "log-max-size", value: "BYTES", own: true, set: setSize(func(o *options) *int64 { return &o.logMaxSize }),
		help: "size at which gorun rotates a log file, such as 100M (no limit)"},
	{group: groupOutput, name: "log-keep", value: "N", own: true, set: setNumber(1, maxRestarts, func(o *options) *int { return &o.logKeep }),
		help: "how many rotated log files to keep, for each stream (all)"},
	{group: groupOutput, name: "logs-specs", value: "NAME", choices: logsSpecs, set: setChoice(logsSpecs, func(*options) *string { return new(string) }),
		help: "accepted for torchrun: only default, as there are no plugins"},
	{group: groupOutput, name: "event-log-handler", value: "NAME", choices: eventHandlers,
		set:  setChoice(eventHandlers, func(o *options) *string { return &o.events }),
		help: "where to write one line of JSON for each worker that has ended: null (nowhere) or console (null)"},

	{group: groupProcessors, name: "numa-binding", value: "NAME", choices: numaPolicies, set: setChoice(numaPolicies, func(o *options) *string { return &o.numa }),
		help: "processors that each worker is bound to: those of its NUMA node (node) or socket (socket), its share of the node's cores (exclusive), " +
			"one group of cores with a common cache (core-complex), or none at all (none); with auto, several workers get their share of the cores " +
			"if there are enough, and memory is not bound (auto)"},
	{group: groupProcessors, name: "omp-num-threads", value: "N", choices: []string{"auto"}, own: true, set: setThreads,
		help: "OMP_NUM_THREADS of the workers: a number, or auto for each worker's share of the cores (what gorun inherits, or else 1 if there are several workers)"},
	{group: groupProcessors, name: "virtual-local-rank", set: setSwitch(func(o *options) *bool { return &o.virtualLocalRank }),
		help: "give every worker LOCAL_RANK 0, and let it see only the device of its real local rank"},

	{group: groupView, name: "dry-run", own: true, set: setSwitch(func(o *options) *bool { return &o.dryRun }),
		help: "print what gorun would start on this node, and start nothing"},
	{group: groupView, name: "json", own: true, set: setSwitch(func(o *options) *bool { return &o.json }),
		help: "with --dry-run: print JSON"},
}
