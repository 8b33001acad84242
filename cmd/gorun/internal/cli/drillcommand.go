package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/drill"
)

const aboutDrill = "Each scenario starts a job with several agents on this machine, and injects one fault. A table on stdout shows the results. " +
	"The exit code is 1 if a job did not do what it should."

const drillExamples = `gorun drill
gorun drill worker-kill agent-kill
gorun drill --random --minutes=30 --nodes=4`

// mostMinutes is the longest that --random may take: a year.
const mostMinutes = 365 * 24 * 60

// drillCommand is gorun drill: faults on purpose.
func drillCommand() *cobra.Command {
	var o drill.Options
	var list, asJSON, random bool
	var seed uint64
	var minutes float64
	cmd := &cobra.Command{
		Use: "drill [scenario...]", Short: "Break jobs on purpose, and see whether they go on", Long: aboutDrill, Example: drillExamples, ValidArgs: drillNames(),
		RunE: func(cmd *cobra.Command, names []string) error {
			scenarios, err := drillsOf(names)
			if err != nil {
				return err
			}
			switch seeded, timed := cmd.Flags().Changed("seed"), cmd.Flags().Changed("minutes"); {
			case random && len(names) > 0:
				return usagef("gorun drill: --random is instead of scenarios, of which %s is one", quote(names[0]))
			case !random && (seeded || timed):
				return usagef("gorun drill: --seed and --minutes are for --random")
			case random && !(minutes > 0 && minutes <= mostMinutes):
				return usagef("gorun drill: --minutes=%v: want more than 0 and at most %d", minutes, mostMinutes)
			case random:
				if !seeded {
					seed = rand.Uint64()
				}
				scenarios = []*drill.Scenario{drill.Random(seed, time.Duration(minutes*float64(time.Minute)))}
			}
			if o.Nodes < 2 || o.Nproc < 1 || o.Timeout <= 0 {
				return usagef("gorun drill: want --nodes of at least 2, --nproc-per-node of at least 1, and a positive --timeout")
			}
			if list {
				for _, s := range scenarios {
					_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%-18s %s\n", s.Name, s.About)
				}
				return nil
			}
			if o.Gorun, err = os.Executable(); err != nil {
				return err
			}
			std := newStdio(os.Stdout, os.Stderr)
			interrupts := notify([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP})
			std.watch(slog.New(slog.DiscardHandler), interrupts)
			o.Log = std.err
			err = runDrills(cmd.Context(), o, scenarios, asJSON, std.out, interrupts)
			return std.finish(err, drainTimeouts(err), interrupts)
		},
	}
	cmd.SetFlagErrorFunc(commandFlagError)
	flags := cmd.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	flags.IntVar(&o.Nodes, "nodes", 3, "`N` agents (3)")
	flags.IntVar(&o.Nproc, "nproc-per-node", 2, "`N` workers for each agent (2)")
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "longest `DURATION` of a scenario (1m)")
	flags.BoolVar(&o.Keep, "keep", false, "keep the logs of all scenarios, not only of those that fail")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "log every step")
	flags.BoolVar(&random, "random", false, "inject random faults instead of playing scenarios")
	flags.Uint64Var(&seed, "seed", 0, "`SEED` of --random: the same seed chooses the same faults (a new one, which gorun logs)")
	flags.Float64Var(&minutes, "minutes", 1, "length of --random in `MINUTES` (1)")
	flags.BoolVar(&list, "list", false, "list the scenarios")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	return cmd
}

// runDrills prints what has become of them. The error says which did not hold.
func runDrills(ctx context.Context, o drill.Options, scenarios []*drill.Scenario, asJSON bool, out io.Writer, interrupts <-chan os.Signal) error {
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

	results, err := drill.Run(ctx, o, scenarios)
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(results)
	} else {
		err = drill.Table(out, results)
	}
	failed := slices.DeleteFunc(results, func(r drill.Result) bool { return r.Held || r.Skipped })
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%d of %d drills did not hold", len(failed), len(scenarios))
	}
	return err
}

func drillNames() (names []string) {
	for _, s := range drill.Scenarios {
		names = append(names, s.Name)
	}
	return names
}

// drillsOf is the scenarios of these names; none means all.
func drillsOf(names []string) (list []*drill.Scenario, err error) {
	for _, name := range names {
		i := slices.Index(drillNames(), name)
		if i < 0 {
			return nil, usagef("gorun drill: no scenario %s%s: want %s", quote(name), didYouMean(name, drillNames()), anyOf(drillNames()))
		}
		list = append(list, drill.Scenarios[i])
	}
	if len(names) == 0 {
		list = drill.Scenarios
	}
	return list, nil
}

// drillWorkerCommand is what gorun drill starts in its jobs.
func drillWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: drill.WorkerCommand, Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drill.Work(cmd.Context(), args[0], args[1], args[2])
		},
	}
}
