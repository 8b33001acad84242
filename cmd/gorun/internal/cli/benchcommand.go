package cli

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gorun/gorun/cmd/gorun/internal/bench"
	"github.com/gorun/gorun/launcher/topology"
)

const aboutBench = "gorun bench starts a job that runs the operations that you name, or all of them, with buffers of many sizes. " +
	"It prints a table like that of nccl-tests on stdout, and the flags of nccl-tests have the same meaning. There is no -g, -t, -m, -p, -z or -G, " +
	"since every rank is a process, and its calls block. " +
	"gorun's own flags place the ranks; without --nproc-per-node, there is one rank for each CPU, but at least 2. " +
	"The exit code is 1 if a result is wrong."

const benchExamples = `gorun bench all_reduce
gorun bench all_gather broadcast -b 1K -e 16M --nproc-per-node=2
gorun bench all_reduce --explain -e 1M`

// benchCommand is gorun bench: a job whose workers are this binary and measure calls.
func benchCommand(here host, start startFunc) *cobra.Command {
	c := bench.Config{Sizes: bench.Sizes{Min: 8, Max: 64 << 20, Factor: 2}, Type: "float", Op: "sum", Warmup: 5, Checks: 1, Transport: "auto"}
	cmd := &cobra.Command{
		Use: "bench [flags] [operation...]", DisableFlagsInUseLine: true, Short: "Measure how fast ranks communicate", Long: aboutBench, Example: benchExamples,
	}
	for _, name := range bench.Operations() {
		cmd.ValidArgs = append(cmd.ValidArgs, name+"\t"+bench.About(name))
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	own := func(name, short, value, help string, set func(string) error, choices ...string) {
		ownFlag(cmd, name, short, value, help, set, choices...)
	}
	own("minbytes", "b", "SIZE", "smallest size of a buffer in bytes, such as 8, 1K, 1M or 1G (default 8)", setTo(&c.Sizes.Min, size))
	own("maxbytes", "e", "SIZE", "largest size of a buffer (default 64M)", setTo(&c.Sizes.Max, size))
	own("stepfactor", "f", "N", "factor from each size to the next (default 2)", setTo(&c.Sizes.Factor, between(2, bench.MaxFactor)))
	own("stepbytes", "i", "SIZE", "step from each size to the next, instead of a factor", setTo(&c.Sizes.Step, size))
	own("iters", "n", "N", "number of calls to measure (default: as many as fit in a tenth of a second, from 5 to 20000)", setTo(&c.Iterations, between(1, maxCalls)))
	own("warmup-iters", "w", "N", "number of calls before the measured ones (default 5)", setTo(&c.Warmup, between(0, maxCalls)))
	own("check", "c", "N", "how often to check each result; 0: never (default 1)", setTo(&c.Checks, between(0, maxCalls)))
	own("datatype", "d", "TYPE", "type of the elements: "+anyOf(bench.Types())+"; or all (default float)", setTo(&c.Type, benchType), append(bench.Types(), bench.All)...)
	own("op", "o", "OP", "reduction: "+anyOf(bench.Ops)+"; or all (default sum)", setTo(&c.Op, benchOp), append(bench.Ops[:len(bench.Ops):len(bench.Ops)], bench.All)...)
	own("root", "r", "RANK", "rank of the root, for operations that have one; or all: every rank in turn (default 0)", setTo(&c.Root, benchRoot))
	own("dirty", "", "", "rewrite the input before each call, as programs do; the time for this does not count", setTo(&c.Dirty, parseSwitch))
	own("alloc", "", "", "use buffers from comm.Alloc, which the ranks of a node share", setTo(&c.Alloc, parseSwitch))
	own("p99", "", "", "also print the median and the 99th percentile of the time of single calls", setTo(&c.P99, parseSwitch))
	own("transport", "", "NAME", "how bytes move: "+anyOf(transports)+" (default auto)", setTo(&c.Transport, choice(transports)), transports...)
	own("json", "", "", "print a line of JSON for each size instead of a table", setTo(&c.JSON, parseSwitch))
	own("explain", "", "", "print which algorithm comm uses for each size, and its alternatives, instead of measuring", setTo(&c.Explain, parseSwitch))
	own("tune", "", "", "measure all algorithms of each operation, and print rules for GORUN_COMM_TUNE that choose the fastest", setTo(&c.Tune, parseSwitch))
	launch := newCommandLine(func(f *flag) bool {
		return slices.Contains([]string{groupNodes, groupRendezvous, groupProcessors}, f.group)
	})
	launch.add(cmd, (*flag).usage)
	nproc := cmd.Flag("nproc-per-node")
	nproc.Usage = strings.Replace(nproc.Usage, "(default 1)", "(default: one for each CPU, but at least 2)", 1)

	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		var err error
		if c.Operations, err = benchNames(names); err != nil {
			return err
		}
		if flags.Changed("stepbytes") && flags.Changed("stepfactor") {
			return usagef("--stepbytes and --stepfactor exclude each other: leave out --stepbytes or --stepfactor")
		}
		o, err := launch.values(here.lookup).options(here)
		if err != nil {
			return err
		}
		command, err := o.forBench(&c)
		if err != nil {
			return err
		}
		return start(cmd.Context(), o, command)
	}
	return cmd
}

// forBench sets options for a job whose workers are this binary, and returns their command line.
func (o *options) forBench(c *bench.Config) ([]string, error) {
	if _, given := o.given["nproc-per-node"]; !given {
		cpus, err := topology.CPUCount(o.host.root)
		if err != nil {
			return nil, err
		}
		o.nproc = max(2, cpus)
	}
	ranks := 0 // not known where nodes may differ
	if o.nnodes == 1 {
		ranks = o.nproc
	}
	if err := c.Check(ranks); err != nil {
		return nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.noPython, o.prefix = true, ""
	if o.threads == 0 {
		o.threads = 1 // nothing to tell the user
	}
	return []string{self, bench.WorkerCommand, string(config)}, nil
}

// benchNames checks the names of operations. No names mean all operations.
func benchNames(names []string) ([]string, error) {
	all := bench.Operations()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, usagef("no operation %s%s: want %s", quote(name), didYouMean(name, all), anyOf(all))
		}
	}
	if len(names) == 0 {
		names = all
	}
	return names, nil
}

// transports are the values that comm.WithTransport accepts.
var transports = []string{"auto", "shm", "tcp"}

// maxCalls prevents a typing error from running forever.
const maxCalls = 1 << 30

// ownFlag adds a flag that belongs to one command only. It is a switch if value, the placeholder in the help, is empty.
func ownFlag(cmd *cobra.Command, name, short, value, help string, set func(string) error, choices ...string) {
	f := cmd.Flags().VarPF(setter{value, set}, name, short, help)
	if value == "" {
		f.NoOptDefVal = "1"
	}
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// A setter is a pflag.Value that is parsed at once.
type setter struct {
	value string // what stands for it in the help; empty: it is a switch
	set   func(string) error
}

var _ pflag.Value = setter{}

func (s setter) Set(text string) error { return s.set(text) }
func (s setter) String() string        { return "" }
func (s setter) Type() string          { return s.value }

// setTo returns a function that parses a text and stores the result at p.
func setTo[T any](p *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		v, err := parse(text)
		if err == nil {
			*p = v
		}
		return err
	}
}

func benchOp(text string) (string, error) {
	return choice(append([]string{bench.All}, bench.Ops...))(text)
}

func benchType(text string) (string, error) {
	name, ok := bench.TypeNamed(text)
	if !ok {
		return "", errors.New("want " + anyOf(bench.Types()) + ", or all" + didYouMean(text, bench.Types()))
	}
	return name, nil
}

func benchRoot(text string) (int, error) {
	if text == bench.All {
		return bench.AllRoots, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= maxProcs {
		return 0, errors.New("want a rank, from 0, or all")
	}
	return n, nil
}
