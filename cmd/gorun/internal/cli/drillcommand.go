package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/drill"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/cmd/gorun/internal/scratch"
	"github.com/gorun/gorun/launcher"
)

const aboutDrill = "gorun drill runs the scenarios that you name, or all of them; --list shows what they are. " +
	"Each scenario starts a job with several agents on this machine, and injects one fault. " +
	"After --, you can name a program of your own, which runs instead of the built-in one. A table on stdout shows the results. The exit code is 1 if a job did not do what it should."

const drillExamples = `gorun drill
gorun drill worker-kill agent-kill
gorun drill --random --minutes=30 --nodes=4
gorun drill worker-kill -- ./train --steps=100`

// mostMinutes is the longest duration of --random: a year.
const mostMinutes = 365 * 24 * 60

// mostRepeats is the highest --repeat.
const mostRepeats = 1 << 20

// A drillFlags has what the flags of gorun drill say.
type drillFlags struct {
	drill.Options
	policies             []drill.Policy
	list, asJSON, random bool
	worker, svg          string
	seed                 uint64
	minutes              float64
}

// drillCommand is gorun drill, which injects faults.
func drillCommand() *cobra.Command {
	o := &drillFlags{
		Options:  drill.Options{Nodes: 3, Nproc: 2, Timeout: time.Minute, Repeat: 1, After: 5 * time.Second},
		policies: drill.Policies, minutes: 1,
	}
	cmd := &cobra.Command{
		Use: "drill [flags] [scenario...] [-- program [argument...]]", DisableFlagsInUseLine: true,
		Short: "Break jobs on purpose, and check that they recover", Long: aboutDrill, Example: drillExamples, ValidArgs: drillNames(),
		RunE: o.run,
	}
	flags := cmd.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	flags.SortFlags = false
	own := func(name, short, value, help string, set func(string) error) {
		ownFlag(cmd, name, short, value, help, set)
	}
	own("list", "", "", "list the scenarios", setTo(&o.list, parseSwitch))
	own("nodes", "", "N", "number of agents (default 3)", setTo(&o.Nodes, between(2, maxNodes)))
	own("nproc-per-node", "", "N", "number of workers for each agent (default 2)", setTo(&o.Nproc, between(1, maxProcs)))
	own("on-failure", "", "NAME", "restart, replace or both: the --on-failure of the jobs (default both)", setTo(&o.policies, parsePolicies))
	own("worker", "", "NAME", "go or torch: in what the built-in program is written, Go or Python with PyTorch (default go)", setTo(&o.worker, choice([]string{"go", torchWorkers})))
	own("preload", "", "", "with --worker=torch, give the jobs --preload=auto", setTo(&o.Preload, parseSwitch))
	own("repeat", "", "N", "how often to run each scenario; the table then has the median and the worst times (default 1)", setTo(&o.Repeat, between(1, mostRepeats)))
	own("timeout", "", "DURATION", "longest time that a scenario may take (default 1m)", setTo(&o.Timeout, positiveDuration))
	own("after", "", "DURATION", "how long your own program runs before the fault (default 5s)", setTo(&o.After, positiveDuration))
	own("random", "", "", "inject random faults instead of running scenarios", setTo(&o.random, parseSwitch))
	own("minutes", "", "MINUTES", "how long --random runs (default 1)", setTo(&o.minutes, parseMinutes))
	own("seed", "", "SEED", "seed of --random, which determines the faults (default: a new one, which gorun logs)", setTo(&o.seed, parseSeed))
	own("json", "", "", "print JSON instead of a table", setTo(&o.asJSON, parseSwitch))
	own("svg", "", "FILE", "draw what all processes did, and when, in a file", setTo(&o.svg, parseNewFile))
	own("keep", "", "", "keep the logs of all scenarios, not only of those that fail", setTo(&o.Keep, parseSwitch))
	own("verbose", "v", "", "log every step", setTo(&o.Verbose, parseSwitch))
	return cmd
}

// run is the command, with its arguments.
func (o *drillFlags) run(cmd *cobra.Command, args []string) error {
	scenarios, err := o.scenarios(cmd, args)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range scenarios {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%-23s %s\n", s.Name, s.About)
		}
		return nil
	}
	if o.Gorun, err = os.Executable(); err != nil {
		return err
	}
	if o.worker == torchWorkers {
		if o.Torch, err = findTorch(cmd.Context()); err != nil {
			return err
		}
	}
	if o.Program != nil {
		if o.Dir, err = os.Getwd(); err != nil {
			return err
		}
		if _, err := exec.LookPath(o.Program[0]); err != nil {
			return usagef("%v", err)
		}
	}
	std := newStdio(os.Stdout, os.Stderr)
	caught, silent := job.Notify([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}), slog.New(slog.DiscardHandler)
	std.watch(silent, caught)
	interrupts := job.Unrepeated(caught, silent)
	o.Log = std.err
	err = o.drill(cmd.Context(), scenarios, std.out, interrupts)
	return std.finish(err, drainTimeouts(err), interrupts)
}

// scenarios returns the scenarios to run, and sets the user's own program.
func (o *drillFlags) scenarios(cmd *cobra.Command, names []string) ([]*drill.Scenario, error) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		if names, o.Program = names[:n], names[n:]; len(o.Program) == 0 {
			return nil, usagef("no program follows --")
		}
	}
	scenarios, err := drillsOf(names)
	if err != nil {
		return nil, err
	}
	switch seeded, timed := cmd.Flags().Changed("seed"), cmd.Flags().Changed("minutes"); {
	case o.random && o.Program != nil:
		return nil, usagef("--random runs the built-in program only: leave out %s", quote(o.Program[0]))
	case o.random && len(names) > 0:
		return nil, usagef("--random runs no scenarios: leave out %s", quote(names[0]))
	case o.Program != nil && o.worker == torchWorkers:
		return nil, usagef("--worker is for the built-in program: leave out %s", quote(o.Program[0]))
	case o.Preload && o.worker != torchWorkers:
		return nil, usagef("--preload needs --worker=torch")
	case o.Program == nil && cmd.Flags().Changed("after"):
		return nil, usagef("--after needs a program of your own, which follows --")
	case !o.random && (seeded || timed):
		return nil, usagef("--seed and --minutes need --random")
	case o.random:
		if !seeded {
			o.seed = rand.Uint64()
		}
		scenarios = []*drill.Scenario{drill.Random(o.seed, time.Duration(o.minutes*float64(time.Minute)))}
	}
	return scenarios, nil
}

// torchWorkers are in Python.
const torchWorkers = "torch"

// findTorch returns the path of a Python with torch and gorun.
func findTorch(ctx context.Context) (string, error) {
	const module = "gorun.torch"
	program, err := launcher.Python(os.Getenv("PYTHON_EXEC")).ResolveModule(module, nil)
	if err != nil {
		return "", err
	}
	python := program.Interpreter()
	if out, err := exec.CommandContext(ctx, python, "-c", "import "+module).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", usagef("--worker=torch: %s cannot import %s (%s); $PYTHON_EXEC names another Python", python, module, lines[len(lines)-1])
	}
	return python, nil
}

// parsePolicies reads which policies of --on-failure to drill.
func parsePolicies(text string) ([]drill.Policy, error) {
	switch {
	case text == "both":
		return drill.Policies, nil
	case slices.Contains(drill.Policies, drill.Policy(text)):
		return []drill.Policy{drill.Policy(text)}, nil
	default:
		return nil, errors.New("want restart, replace or both")
	}
}

// parseNewFile takes the name of a file that can be written, and makes it, so that a scenario does not run in vain.
func parseNewFile(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return "", fmt.Errorf("cannot write %s: %w", quote(name), agent.Bare(err))
	}
	return name, f.Close()
}

func positiveDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a positive duration, such as 90s or 5m")
	}
	return d, nil
}

func parseMinutes(text string) (float64, error) {
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || !(minutes > 0 && minutes <= mostMinutes) {
		return 0, fmt.Errorf("want a number of minutes, more than 0 and at most %d", mostMinutes)
	}
	return minutes, nil
}

func parseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, errors.New("want a whole number, 0 or more")
	}
	return seed, nil
}

// drill runs scenarios, and prints the results, even if not all scenarios could run. The error says how many did not hold.
func (o *drillFlags) drill(ctx context.Context, scenarios []*drill.Scenario, out io.Writer, interrupts <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case sig := <-interrupts:
			cancel(&agent.InterruptError{Signal: sig.(syscall.Signal)})
		case <-over:
		}
	}()

	if logger, err := newLogger(o.Log, "", false); err == nil {
		scratch.ChooseTempDir(logger)
	}
	results, runErr := drill.Run(ctx, o.Options, scenarios, o.policies)
	if runErr != nil && len(results) == 0 {
		return runErr
	}
	err := errors.Join(runErr, printDrills(out, results, o.asJSON))
	if o.svg != "" {
		err = errors.Join(err, os.WriteFile(o.svg, drill.SVG(results), 0o644))
	}
	all := len(results)
	failed := slices.DeleteFunc(results, func(r drill.Result) bool { return r.Held || r.Skipped })
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d drills did not hold", len(failed), all))
	}
	return err
}

// printDrills prints results as a table, or as JSON.
func printDrills(out io.Writer, results []drill.Result, asJSON bool) error {
	if asJSON {
		return printJSON(out, map[string][]drill.Result{"results": results})
	}
	return drill.Table(out, results)
}

func drillNames() (names []string) {
	for _, s := range drill.Scenarios {
		names = append(names, s.Name)
	}
	return names
}

// drillsOf returns the scenarios with these names. No names mean all scenarios.
func drillsOf(names []string) (list []*drill.Scenario, err error) {
	for _, name := range names {
		i := slices.Index(drillNames(), name)
		if i < 0 {
			return nil, usagef("no scenario %s%s: want %s", quote(name), didYouMean(name, drillNames()), anyOf(drillNames()))
		}
		list = append(list, drill.Scenarios[i])
	}
	if len(names) == 0 {
		list = drill.Scenarios
	}
	return list, nil
}
