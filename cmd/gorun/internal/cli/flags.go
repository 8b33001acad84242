package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// A flag is one row of the table: a flag of the command line, and its default in the environment.
type flag struct {
	group string // heading in the help
	name  string // --name; every - may be written _
	short string // one letter, or empty
	value string // what stands for the value in the help; empty: the flag is a switch
	help  string
	alias string // a variable that counts if neither the flag nor its PET_ variable is given; or empty

	set func(*options, string) error // the error says what is wanted
}

// env names the variable that holds the default: torchrun's PET_, then the flag's name.
func (f *flag) env() string {
	return "PET_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
}

const (
	groupNodes      = "Nodes and workers"
	groupRendezvous = "Rendezvous"
	groupStopping   = "Failures and stopping"
	groupOutput     = "Output"
)

// table is every flag of gorun, in the order of the help.
var table = []flag{
	{group: groupNodes, name: "nnodes", value: "N", help: "nodes of the job (1)", set: setNnodes},
	{group: groupNodes, name: "nproc-per-node", value: "N", set: setNproc,
		help: "workers on this node: a number, auto or cpu (one for each CPU), gpu (one for each GPU) (1)"},
	{group: groupNodes, name: "node-rank", value: "R", help: "number of this node, from 0 (0)",
		set: setNumber(0, maxNodes-1, func(o *options) *int { return &o.nodeRank })},
	{group: groupNodes, name: "role", value: "NAME", help: "role of this node's workers (default)",
		set: setText("a name", func(o *options) *string { return &o.role })},
	{group: groupNodes, name: "local-addr", value: "HOST", help: "address of this node (its host name)",
		set: setHost(func(o *options) *string { return &o.localAddr })},

	{group: groupRendezvous, name: "standalone", help: "one node, and nothing that another job could share", set: setStandalone},
	{group: groupRendezvous, name: "master-addr", value: "HOST", help: "address of node 0 (127.0.0.1 for one node)",
		set: setHost(func(o *options) *string { return &o.masterAddr })},
	{group: groupRendezvous, name: "master-port", value: "PORT", help: "free port on node 0 (any for one node, otherwise 29500)",
		set: setNumber(0, maxPort, func(o *options) *int { return &o.masterPort })},
	{group: groupRendezvous, name: "rdzv-endpoint", value: "HOST:PORT", set: setEndpoint,
		help: "the master's address and port in one; wins over the two flags above"},
	{group: groupRendezvous, name: "rdzv-backend", value: "NAME", help: "how the nodes meet: static", set: setBackend},
	{group: groupRendezvous, name: "rdzv-id", value: "ID", help: "name of the job (random for one node, otherwise none)",
		set: setText("a name", func(o *options) *string { return &o.runID })},
	{group: groupRendezvous, name: "rdzv-conf", value: "K=V,...", help: "for static: rank=R (as --node-rank), timeout=SECONDS", set: setConf},
	{group: groupRendezvous, name: "rdzv-token-file", value: "FILE", set: setText("a file name", func(o *options) *string { return &o.tokenFile }),
		help: "several nodes: file with a secret, the same on every node, by which workers know each other ($GORUN_TOKEN)"},

	{group: groupStopping, name: "max-restarts", value: "N", help: "how often all workers are started again after a failure (0)",
		set: setNumber(0, maxRestarts, func(o *options) *int { return &o.maxRestarts })},
	{group: groupStopping, name: "shutdown-timeout", value: "SECONDS", alias: "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", set: setShutdown,
		help: "time that workers have to stop before they are killed (30)"},
	{group: groupStopping, name: "monitor-interval", value: "SECONDS", set: setInterval,
		help: "accepted for torchrun; exits are noticed at once"},
	{group: groupStopping, name: "start-method", value: "NAME", set: setStartMethod,
		help: "accepted for torchrun: spawn, fork or forkserver"},

	{group: groupOutput, name: "log-dir", value: "DIR", help: "directory for log files; /dev/null: none",
		set: setText("a directory", func(o *options) *string { return &o.logDir })},
	{group: groupOutput, name: "redirects", short: "r", value: "STD", set: setRedirects,
		help: "streams that go to files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank, as 0:3,1:2 (0)"},
	{group: groupOutput, name: "tee", short: "t", value: "STD", help: "streams that go to files and to the console; as --redirects (0)", set: setTee},
}

// values is what the command line gave, by row of the table. Nothing is parsed before all is known, so that an
// error can say where its value came from.
type values []*value

// A value is a pflag.Value that only remembers.
type value struct {
	flag  *flag
	text  string
	given bool
}

func (v *value) Set(text string) error { v.text, v.given = text, true; return nil }
func (v *value) String() string        { return v.text }
func (v *value) Type() string          { return v.flag.value }

func newValues() values {
	vs := make(values, len(table))
	for i := range table {
		vs[i] = &value{flag: &table[i]}
	}
	return vs
}

func (vs values) register(flags *pflag.FlagSet) {
	for _, v := range vs {
		f := flags.VarPF(v, v.flag.name, v.flag.short, v.flag.help)
		if v.flag.value == "" {
			f.NoOptDefVal = "1"
		}
	}
}

// options parses every value: the command line's, or else the environment's.
func (vs values) options(lookup func(string) (string, bool)) (*options, error) {
	o := defaults()
	for _, v := range vs {
		text, from, given := v.text, "--"+v.flag.name, v.given
		for _, name := range []string{v.flag.env(), v.flag.alias} {
			if !given && name != "" {
				from = name
				text, given = lookup(name)
			}
		}
		if !given {
			continue
		}
		o.given[v.flag.name] = from + "=" + quote(text)
		if err := v.flag.set(o, text); err != nil {
			return nil, usagef("%s: %w", o.given[v.flag.name], err)
		}
	}
	token, hasToken := lookup("GORUN_TOKEN")
	if hasToken {
		o.token = token
	}
	return o, o.check()
}

// usageError is a mistake of whoever wrote the command line. It is one line, and nothing has been started.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
