package cli

import (
	"os"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/launcher"
)

const (
	groupNodes      = "Nodes and workers"
	groupProgram    = "The program"
	groupRendezvous = "Rendezvous"
	groupStopping   = "Failures and stopping"
	groupOutput     = "Output"
	groupProcessors = "Processors and devices"
	groupView       = "Seeing a job"
	groupTorchrun   = "Only for command lines of torchrun"
)

// table is every flag of gorun, in the order of the help.
var table = []flag{
	{group: groupNodes, name: "nnodes", often: 2, perNode: true, def: "1", value: "N", set: setNnodes,
		help: "number of nodes: N, or MIN:MAX if nodes may come and go",
		launch: "number of nodes: N, or MIN:MAX if the job may go on with fewer hosts (default: one on each host, less " +
			"those of --spares)"},
	{group: groupNodes, name: "nproc-per-node", often: 1, perNode: true, unmistakable: true, def: "1", value: "N",
		choices: procKinds, alias: "PET_N_PROC_PER_NODE", set: setNproc,
		help: "number of workers on this node; or cpu: one for each CPU that gorun may use; gpu or xpu: one for each " +
			"such device; auto: one for each device, or for each CPU if there are no devices",
		launch: "number of workers on a host without a number of its own; or, as the host counts them: cpu: one " +
			"for each CPU that gorun may use; gpu or xpu: one for each such device; auto: one for each device, " +
			"or for each CPU if there are no devices (default 1)"},
	{group: groupNodes, name: "node-rank", often: 8, value: "R",
		set: into(func(o *flags) *int { return &o.nodeRank }, between(0, maxNodes-1)),
		help: "number of this node, from 0, which several static nodes need; if nodes meet over etcd, the number that " +
			"you want it to have (default: any)"},
	{group: groupNodes, name: "spares", def: "0", value: "N", own: true,
		set: into(func(o *flags) *int { return &o.spares }, between(0, maxNodes-1)),
		help: "how many nodes beyond --nnodes wait until one of the job is lost; under a resource manager and with gorun " +
			"launch, the job has so many nodes less than there are"},
	{group: groupNodes, name: "role", def: "default", value: "NAME", help: "role of this node's workers",
		set: orEmpty(into(func(o *flags) *string { return &o.role }, jobName))},
	{group: groupNodes, name: "local-addr", value: "ADDR", alias: commAddr,
		set: orEmpty(into(func(o *flags) *string { return &o.localAddr }, localAddr)),
		help: "address at which the other nodes reach this node, and its workers that use package comm: a name, an IP " +
			"address, an interface, or a prefix that contains the address, such as 10.1.0.0/16 (default: the host name; " +
			"over etcd, the address on the route to the etcd)"},

	{group: groupNodes, name: "health-check", value: "COMMAND", own: true,
		set: orEmpty(into(func(o *flags) *string { return &o.healthCheck }, text("a command"))),
		help: "command of the shell that must exit with 0 before this node joins the job, and again after one of its " +
			"workers has failed; if nodes meet over etcd, a node that fails it waits, and tries again"},
	{group: groupNodes, name: "health-cooldown", def: "30", value: "SECONDS", own: true,
		set:  into(func(o *flags) *time.Duration { return &o.healthCooldown }, toSeconds),
		help: "how long a node waits before it checks its health again; the wait doubles each time, up to 10 minutes"},

	{group: groupProgram, name: "module", often: 15, short: "m",
		help: "run the program as a Python module: python -u -m program",
		set:  into(func(o *flags) *bool { return &o.module }, parseSwitch)},
	{group: groupProgram, name: "python", perNode: true, value: "PATH", own: true,
		set: into(func(o *flags) *string { return &o.python }, text("a Python")),
		help: "Python that runs .py files and modules: its path, or its name in PATH (default: $PYTHON_EXEC, or what a " +
			"script's first line names, or that of the active virtual environment, or python3)"},
	{group: groupProgram, name: "preload", perNode: true, value: "MODULE,...", own: true,
		set: into(func(o *flags) *[]string { return &o.preload }, words("a module")),
		help: "modules that one Python on each node imports, from which it forks the workers of every round; auto: those that " +
			"the program imports at its top level, as far as they are installed"},
	{group: groupProgram, name: "preload-strict", own: true,
		set:  into(func(o *flags) *bool { return &o.preloadStrict }, parseSwitch),
		help: "end the job if workers cannot be preloaded, instead of starting them as without --preload"},
	{group: groupProgram, name: "no-python", help: "run the program as an executable, whatever its name",
		set: into(func(o *flags) *bool { return &o.noPython }, parseSwitch)},
	{group: groupProgram, name: "wdir", perNode: true, value: "DIR", own: true,
		set: into(func(o *flags) *string { return &o.workDir }, text("a directory")),
		help: "directory in which the workers run, and from which gorun looks for the program (default: the one in which " +
			"gorun runs)"},
	{group: groupProgram, name: "env-file", perNode: true, value: "FILE", own: true, repeats: true, set: setEnvFile,
		help: "file with variables for the workers, in the form of docker's --env-file: NAME=VALUE, or NAME for gorun's " +
			"own value, in each line; may be given several times"},
	{group: groupProgram, name: "env", often: 14, perNode: true, value: "NAME=VALUE", own: true, repeats: true,
		set: setEnv,
		help: "variable for the workers, which overrides the environment and --env-file; NAME alone: with gorun's own " +
			"value; may be given several times"},

	{group: groupRendezvous, name: "standalone", unmistakable: true,
		help: "run on one node, and share nothing with other jobs",
		set:  into(func(o *flags) *bool { return &o.standalone }, parseSwitch)},
	{group: groupRendezvous, name: "master-addr", often: 7, value: "HOST",
		help:   "address of node 0 (default 127.0.0.1 for one node)",
		set:    into(func(o *flags) *string { return &o.masterAddr }, hostName),
		launch: "for static nodes: address of the first host (default: the one at which it is reached)"},
	{group: groupRendezvous, name: "master-port", value: "PORT",
		help: "free port on which rank 0 listens (default: any; for static nodes, 29500)",
		set:  into(func(o *flags) *int { return &o.masterPort }, between(0, maxPort))},
	{group: groupRendezvous, name: "rdzv-endpoint", often: 3, unmistakable: true, value: "HOST:PORT",
		set: orEmpty(into(func(o *flags) *string { return &o.endpoint }, anyText)),
		help: "where the nodes meet: the address of your etcd, or of a node that will host one, or of three such nodes, " +
			"separated by commas, any one of which may fail; for static nodes: the address and port of the master",
		launch: "where the nodes meet: the address of your etcd, or of a host that will host one, or of three " +
			"such hosts, separated by commas (default: the first host; with --nnodes=MIN:MAX and three or more " +
			"hosts, the first three)",
		hosting: "address of this machine at which the etcd listens, or three addresses, separated by commas, one of " +
			"which is this machine's (default port 2379)",
		running: "where the nodes of the job meet, as they have it (default: the command is about the nodes on this " +
			"machine, and about jobs that gorun launch has started from it)"},
	{group: groupRendezvous, name: "rdzv-backend", often: 4, perNode: true, unmistakable: true, def: "static",
		value: "NAME", choices: backends,
		help: "how several nodes meet: static (you number them with --node-rank); embedded or c10d (over an etcd that " +
			"one or three of them host); etcd, etcd-v2 or etcd-v3 (over your own etcd)",
		set: into(func(o *flags) *string { return &o.backend }, choice(backends)),
		launch: "how the nodes of several hosts meet: static (without an etcd); embedded or c10d (over an etcd that one " +
			"or three of them host); etcd, etcd-v2 or etcd-v3 (over your own etcd) (default embedded)",
		running: "embedded or c10d (nodes of the job host its etcd); etcd, etcd-v2 or etcd-v3 (your own etcd) " +
			"(default embedded)"},
	{group: groupRendezvous, name: "rdzv-id", often: 5, perNode: true, unmistakable: true, value: "ID",
		help: "name of the job, the same on every node " +
			`(default: random for one node, otherwise "none"; required for etcd)`,
		set:     orEmpty(into(func(o *flags) *string { return &o.runID }, jobName)),
		launch:  "name of the job (default: random)",
		running: `name of the job, in place of JOB (default "none", unless the etcd is your own)`},
	{group: groupRendezvous, name: "rdzv-conf", unmistakable: true, value: "K=V,...", set: setConf,
		help: "settings of the rendezvous: join_timeout, last_call_timeout, ttl (or keep_alive_interval and " +
			"keep_alive_max_attempt), is_host, protocol, ca_cert, ssl_cert, ssl_cert_key, username, password_file, " +
			"etcd_prefix, after_end; for static nodes: rank. Times are in seconds; certificates and keys are PEM files",
		hosting: "settings: ca_cert, ssl_cert and ssl_cert_key instead of a secret; is_host=true if address translation " +
			"leads from the endpoint to this machine",
		running: "settings of the rendezvous, as the nodes of the job have them: protocol, ca_cert, ssl_cert, " +
			"ssl_cert_key, username, password_file, etcd_prefix; certificates and keys are PEM files"},
	{group: groupRendezvous, name: "scale-up", def: "immediate", value: "WHEN", choices: scaleUps, own: true,
		set: into(func(o *flags) *string { return &o.scaleUp }, choice(scaleUps)),
		help: "when late nodes join the job: immediate, on-restart (in the next round) or never (only in place of a lost " +
			"node)"},
	{group: groupRendezvous, name: "worker-tls", own: true,
		set:  into(func(o *flags) *bool { return &o.workerTLS }, parseSwitch),
		help: "encrypt what workers that use package comm send from machine to machine"},
	{group: groupRendezvous, name: "rdzv-token-file", often: 6, value: "FILE", own: true,
		set: into(func(o *flags) *string { return &o.tokenFile }, text("a file name")),
		help: "for several nodes: file with a secret, the same on every node, which keeps strangers out (default: " +
			"$GORUN_TOKEN; on loopback, a file that gorun creates for you)",
		launch: "file on this machine with a secret that keeps strangers out (default: $GORUN_TOKEN, or else a " +
			"random one)",
		hosting: "file with the secret of all nodes (default: $GORUN_TOKEN; on loopback, a file that gorun creates for you)",
		running: "file with the secret that the nodes of the job share (default: $GORUN_TOKEN; on loopback, a file that " +
			"gorun has created for you; under Slurm, from the job, by MUNGE)"},

	{group: groupStopping, name: "max-restarts", often: 9, unmistakable: true, def: "0", value: "N",
		help: "how many times gorun restarts workers after failures",
		set:  into(func(o *flags) *int { return &o.maxRestarts }, between(0, maxRestarts))},
	{group: groupStopping, name: "on-failure", often: 10, def: "restart", value: "NAME", choices: onFailures, own: true,
		set: into(func(o *flags) *string { return &o.onFailure }, choice(onFailures)),
		help: "what follows the failure of a worker: restart (gorun restarts all workers) or replace (it restarts those " +
			"that have failed, and the others live on, if they take part: package comm does)"},
	{group: groupStopping, name: "replace-timeout", def: "30", value: "SECONDS", own: true,
		set: into(func(o *flags) *time.Duration { return &o.replaceTimeout }, toSeconds),
		help: "with --on-failure=replace: how long a worker that lives on may take to enter the next round before gorun " +
			"kills and restarts it"},
	{group: groupStopping, name: "hang-timeout", often: 11, def: "0", value: "SECONDS", own: true,
		set: into(func(o *flags) *time.Duration { return &o.hangTimeout }, hangTimeout),
		help: "how long a worker that reports progress may make none before gorun kills it, as one that has failed, and " +
			"writes what all workers were doing to files; package comm reports progress by itself, and other programs " +
			"touch the file $GORUN_PROGRESS_FILE; 0: no limit"},
	{group: groupStopping, name: "max-restart-backoff", def: "10", value: "SECONDS", own: true,
		set: into(func(o *flags) *time.Duration { return &o.maxBackoff }, toSeconds),
		help: "longest wait before gorun restarts workers that keep failing; the wait begins at 0.1 s and doubles each " +
			"time; 0: no wait"},
	{group: groupStopping, name: "shutdown-timeout", def: "30", value: "SECONDS", alias: "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
		set: into(func(o *flags) *time.Duration { return &o.grace }, toSeconds),
		help: "how long workers may take to stop before gorun kills them; after a signal under Slurm or Kubernetes, a " +
			"little less than they leave it"},
	{group: groupStopping, name: "timeout", def: "0", value: "SECONDS", own: true,
		set: into(func(o *flags) *time.Duration { return &o.timeout }, toSeconds),
		help: "how long the job may run on this node, with all restarts, before gorun stops the workers as after " +
			"SIGTERM, and exits with code 124; 0: no limit"},
	{group: groupStopping, name: "signals-to-handle", def: "SIGTERM,SIGINT,SIGHUP,SIGQUIT", value: "SIG,...",
		choices: signalChoices,
		set:     into(func(o *flags) *[]os.Signal { return &o.stopSignals }, stopSignals),
		help:    "signals on which gorun stops the workers"},
	{group: groupStopping, name: "exit-barrier-timeout", def: "300", value: "SECONDS", own: true,
		alias: "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
		set:   into(func(o *flags) *time.Duration { return &o.exitBarrier }, toSeconds),
		help:  "how long a node whose workers have succeeded waits for the other nodes; static nodes do not wait"},
	{group: groupOutput, name: "log-dir", often: 12, value: "DIR",
		help: "directory for log files; /dev/null: gorun writes no files and drops redirected streams",
		set:  orEmpty(into(func(o *flags) *string { return &o.logDir }, text("a directory")))},
	{group: groupOutput, name: "redirects", def: "0", short: "r", value: "STD", choices: stdChoices,
		set: into(func(o *flags) *launcher.StdMap { return &o.redirects }, parseStd),
		help: "streams that go to files instead of the console: 0 (none), 1 (stdout), 2 (stderr) or 3 (both); or by " +
			"local rank, as in 0:3,1:2"},
	{group: groupOutput, name: "tee", often: 13, def: "0", short: "t", value: "STD", choices: stdChoices,
		set:  into(func(o *flags) *launcher.StdMap { return &o.tee }, parseStd),
		help: "streams that go to files and to the console; takes the same values as --redirects"},
	{group: groupOutput, name: "local-ranks-filter", value: "R,...",
		set:  orEmpty(into(func(o *flags) *map[int]bool { return &o.show }, localRanks)),
		help: "local ranks whose output the console shows; log files contain the output of all (default: all)"},
	{group: groupOutput, name: "duplicate-stdout-filters", value: "TEXT,...",
		set:  into(func(o *flags) *[]string { return &o.stdoutFilters }, filters),
		help: "copy lines of stdout that contain one of these texts to filtered_stdout.log; for a comma in a text, write ,,"},
	{group: groupOutput, name: "duplicate-stderr-filters", value: "TEXT,...",
		set:  into(func(o *flags) *[]string { return &o.stderrFilters }, filters),
		help: "copy lines of stderr that contain one of these texts to filtered_stderr.log"},
	{group: groupOutput, name: "log-line-prefix", def: agent.DefaultPrefix, value: "TEMPLATE", own: true,
		alias: "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
		set:   into(func(o *flags) *string { return &o.prefix }, anyText),
		help: "text at the start of each line on the console; it may contain ${role_name}, ${rank} and ${local_rank}; " +
			`with --tee, it is "[${role_name}${local_rank}]:", as with torchrun`},
	{group: groupOutput, name: "timestamps", own: true,
		set:  into(func(o *flags) *bool { return &o.timestamps }, parseSwitch),
		help: "put the time before each line of the workers on the console, as docker logs and kubectl logs do"},
	{group: groupOutput, name: "stdin", def: "0", value: "WHO", choices: stdins, own: true, set: setStdin,
		help: "who reads gorun's stdin: 0 (local rank 0; with gorun launch, of the first host) or none, as a loop needs " +
			"that reads it itself"},
	{group: groupOutput, name: "no-stdin", own: true,
		set: into(func(o *flags) *bool { return &o.noStdin }, parseSwitch), help: "short for --stdin=none"},
	{group: groupOutput, name: "pty", def: "auto", value: "WHEN", choices: ptys, own: true,
		set: into(func(o *flags) *string { return &o.pty }, choice(ptys)),
		help: "whether stdout of the workers is a pseudo terminal, so that programs in C and others write each line at " +
			"once, and lose none when they crash: yes, no, or auto (if gorun's stdout is a terminal: where the console " +
			"shows it, no file gets it, and gorun runs no Python, which it runs unbuffered)"},
	{group: groupOutput, name: "log-max-size", value: "BYTES", own: true,
		set:  into(func(o *flags) *int64 { return &o.logMaxSize }, size),
		help: "size at which gorun rotates a log file, such as 100M (default: no limit)"},
	{group: groupOutput, name: "log-keep", value: "N", own: true,
		set:  into(func(o *flags) *int { return &o.logKeep }, between(1, maxRestarts)),
		help: "number of rotated log files that gorun keeps for each stream (default: all)"},
	{group: groupOutput, name: "event-log", value: "FILE", own: true,
		set: into(func(o *flags) *string { return &o.eventLog }, text("a file")),
		help: "file to which gorun adds a line of JSON for everything that happens to the job on this node, such as " +
			"rounds, failures and workers that start or exit"},

	{group: groupProcessors, name: "numa-binding", def: "auto", value: "NAME", choices: numaPolicies,
		set: into(func(o *flags) *string { return &o.numa }, choice(numaPolicies)),
		help: "processors to which each worker is bound: node (its NUMA node), socket (its socket), exclusive (its share " +
			"of the NUMA node's cores), core-complex (a group of cores that share a cache), none (not bound) or auto (if " +
			"there are several workers and enough cores, package comm binds each worker that uses it to its share of the " +
			"cores; other programs and memory are not bound)"},
	{group: groupProcessors, name: "omp-num-threads", value: "N", choices: []string{"auto"}, own: true, set: setThreads,
		help: "value of OMP_NUM_THREADS for the workers: a number, or auto for each worker's share of the cores " +
			"(default: the inherited value, or else 1 if there are several workers)"},
	{group: groupProcessors, name: "virtual-local-rank",
		set:  into(func(o *flags) *bool { return &o.virtualLocalRank }, parseSwitch),
		help: "give every worker LOCAL_RANK=0, and let it see only the device of its real local rank"},

	{group: groupView, name: "status-addr", value: "[HOST]:PORT", own: true,
		set: into(func(o *flags) *string { return &o.statusAddr }, statusAddr),
		help: "where gorun serves a page that shows the job, and Prometheus metrics, while it runs: only for you and on " +
			"this machine, unless a host is given, which may be 0.0.0.0 (:8080 is 127.0.0.1:8080); then others need a " +
			"token from a file of yours (default: nowhere)"},
	{group: groupView, name: "dry-run", often: 16, perNode: true, own: true,
		set:  into(func(o *flags) *bool { return &o.dryRun }, parseSwitch),
		help: "print what gorun would start on this node, without starting it"},
	{group: groupView, name: "json", perNode: true, own: true,
		set:  into(func(o *flags) *bool { return &o.json }, parseSwitch),
		help: "with --dry-run: print JSON"},

	{group: groupTorchrun, name: "run-path", help: "run the program as a Python script, with runpy.run_path",
		set: into(func(o *flags) *bool { return &o.runPath }, parseSwitch)},
	{group: groupTorchrun, name: "use-env", def: "1", own: true,
		set:  into(func(o *flags) *bool { return &o.useEnv }, parseSwitch),
		help: "as in torch.distributed.launch; --use-env=0 passes each worker --local-rank=R as its first argument"},
	{group: groupTorchrun, name: "monitor-interval", value: "SECONDS", set: into(nowhere, interval),
		help: "no effect; accepted because torchrun has it: gorun notices exits at once"},
	{group: groupTorchrun, name: "start-method", value: "NAME", choices: startMethods,
		set:  into(nowhere, choice(startMethods)),
		help: "no effect; accepted because torchrun has it: spawn, fork or forkserver"},
	{group: groupTorchrun, name: "logs-specs", value: "NAME", choices: logsSpecs,
		set:  into(nowhere, choice(logsSpecs)),
		help: "accepted because torchrun has it; only default, since there are no plugins"},
}
