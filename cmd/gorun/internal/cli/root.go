// Package cli is the command line of gorun: flags, wiring, exit codes. Main is all of it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gorun/gorun/agent"
)

// version is what --version prints.
const version = "0.1.0"

// Main runs gorun with args, which do not include its own name, and returns the exit code. stdout gets what was
// asked for: the workers' output, help, the version. stderr gets the rest.
func Main(args []string, stdout, stderr *os.File) int {
	cmd := newCommand(func(ctx context.Context, o *options, command []string) error {
		return run(ctx, o, command, stdout, stderr)
	})
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.Execute()
	if err != nil {
		_, _ = fmt.Fprint(stderr, explain(err)) // there is nowhere to report that stderr is gone
	}
	return exitCode(err)
}

// explain is what people read of an error: a block for a failed worker, one line for the rest.
func explain(err error) string {
	if failed, ok := errors.AsType[*agent.WorkerError](err); ok {
		return failed.Summary()
	}
	return "gorun: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n"
}

// newCommand returns the command; runF gets the checked options, and the program with its arguments.
func newCommand(runF func(context.Context, *options, []string) error) *cobra.Command {
	values := newValues()
	cmd := &cobra.Command{
		Use:           "gorun",
		Args:          cobra.ArbitraryArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, command []string) error {
			o, err := values.options(os.LookupEnv)
			if err != nil {
				return err
			}
			if len(command) == 0 || command[0] == "" {
				return usagef("no program to run: give one, as in gorun --nproc-per-node=2 ./train --epochs=3")
			}
			return runF(cmd.Context(), o, command)
		},
	}
	cmd.SetContext(context.Background())
	cmd.SetVersionTemplate("gorun {{.Version}}\n")
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { cmd.Print(help()) })
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })

	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the program is the program's
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	flags.BoolP("help", "h", false, "")
	flags.Bool("version", false, "")
	values.register(flags)
	return cmd
}
