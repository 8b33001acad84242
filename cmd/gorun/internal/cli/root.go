// Package cli is the command line of gorun: flags, wiring, exit codes. Its only entry point is Main.
//
// A command line becomes four values in turn: values (flags.go: texts, and where they come from), flags (options.go: what the user has said;
// the functions of flagtable.go set them), options (the flags, checked and completed), and a job.Plan (plan.go), which has all decisions.
// Package job carries that out. What --dry-run prints is a document, made of the plan for one round. A launchPlan is what gorun launch starts.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/bench"
	"github.com/gorun/gorun/cmd/gorun/internal/drill"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/remote"
)

// Main runs gorun with args, which do not include the program name, and returns the exit code. stdout gets what
// the user asked for: the workers' output, help, the version. stderr gets the rest.
func Main(args []string, stdout, stderr *os.File, etcd Etcd) int {
	here := host{lookup: os.LookupEnv, root: os.DirFS("/"), hostname: os.Hostname, hasProgram: hasProgram}
	start := func(ctx context.Context, o *options, command []string) error {
		return run(ctx, o, command, launchedNode{}, stdout, stderr, etcd)
	}
	if len(args) > 2 && args[0] == remote.NodeCommand {
		return runNode(here, args[1:], stdout, stderr, etcd)
	}
	cmd := newCommand(here, start)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // behind flags there is always a program
		addCommands(cmd, here, start, stdout, stderr, etcd)
	}
	out := &checkedWriter{to: stdout}
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	ran, err := cmd.ExecuteC()
	if err == nil && out.err != nil {
		err = fmt.Errorf("cannot write to stdout: %w", agent.Bare(out.err))
	}
	if err != nil && !is[*reportedError](err) {
		_, _ = fmt.Fprint(stderr, explain(speaker(ran), err, wantsColor(stderr))) // there is nowhere to report that stderr is gone
	}
	return exitCode(err)
}

// A checkedWriter keeps the first error, because code that prints texts does not check.
type checkedWriter struct {
	to  io.Writer
	err error
}

func (w *checkedWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// self is who says how a job ended.
const self = "gorun"

// speaker returns who says the error of a command: gorun run is the same as gorun, and users do not know hidden commands.
func speaker(ran *cobra.Command) string {
	if ran.Name() == "run" || ran.Hidden {
		return self
	}
	return ran.CommandPath()
}

// explain returns the text of an error for people: a block for a failed worker whose node is to print it, one line for other errors.
func explain(who string, err error, color bool) string {
	text := err.Error()
	if failed, ok := errors.AsType[*agent.WorkerError](err); ok {
		if failed.SummaryHost == "" {
			return paintSummary(failed.Summary(), color)
		}
		text = failed.Brief()
	}
	if launched, ok := errors.AsType[*launchedError](err); ok && launched.Summary != "" {
		return paintSummary(printableLines(strings.TrimSpace(launched.Summary))+"\n", color)
	}
	return heading(who+":", color) + " " + agent.Printable(oneLine(text)) + "\n"
}

// A startFunc runs a job, given the checked options and the program with its arguments.
type startFunc func(ctx context.Context, o *options, command []string) error

// newCommand returns the root command. It calls start to run the job.
func newCommand(here host, start startFunc) *cobra.Command {
	cmd := runCommand("gorun", here, start)
	cmd.SetContext(context.Background())
	cmd.SetVersionTemplate("gorun {{.Version}}\n")
	cmd.SetHelpFunc(func(asked *cobra.Command, _ []string) {
		text := help()
		if asked != cmd && asked.Name() != "run" {
			text = commandHelp(asked)
		}
		asked.Print(text)
	})
	cmd.SetFlagErrorFunc(flagError)
	return cmd
}

// runCommand returns a command that runs a job: gorun itself, or gorun run, which is the same.
func runCommand(name string, here host, start startFunc) *cobra.Command {
	line := newCommandLine(nil)
	cmd := &cobra.Command{
		Use:               name,
		Args:              cobra.ArbitraryArgs,
		Version:           version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault), // files: the program, and its arguments
		RunE: func(cmd *cobra.Command, command []string) error {
			o, err := line.values(here.lookup).options(here)
			if err != nil {
				return err
			}
			if len(command) == 0 || command[0] == "" {
				return usagef("no program to run: give one, as in gorun --nproc-per-node=2 ./train --epochs=3")
			}
			return start(cmd.Context(), o, withoutDashes(cmd, command))
		},
	}
	line.register(cmd)
	return cmd
}

// withoutDashes returns the program and its arguments without the -- that torchrun's parser takes away: the one after the program, unless
// there is one before it.
func withoutDashes(cmd *cobra.Command, command []string) []string {
	if len(command) > 1 && command[1] == "--" && cmd.ArgsLenAtDash() < 0 {
		return slices.Delete(slices.Clone(command), 1, 2)
	}
	return command
}

// addCommands adds the commands, which take the place of a program.
func addCommands(cmd *cobra.Command, here host, start startFunc, stdout, stderr *os.File, etcd Etcd) {
	cmd.AddCommand(
		runCommand("run", here, start), launchCommand(here, stdout, stderr), agentCommand(), benchCommand(here, start),
		versionCommand(), envCommand(here), drillCommand(),
		completionCommand(), printCommand("man", "Print the manual page in roff format", manual), etcdCommand(here, etcd),
	)
	cmd.AddCommand(jobCommands(here, etcd)...)
	cmd.AddCommand(workerCommands()...)
	cmd.SetHelpCommand(helpCommand(cmd))
}

// workerCommands are what gorun bench and gorun drill start.
func workerCommands() []*cobra.Command {
	hidden := func(name string, args int, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
		return &cobra.Command{
			Use: name, Hidden: true, Short: "What gorun starts as a worker", Args: cobra.MinimumNArgs(args), DisableFlagParsing: true, RunE: run,
		}
	}
	return []*cobra.Command{
		hidden(bench.WorkerCommand, 1, func(cmd *cobra.Command, args []string) error {
			return bench.Work(cmd.Context(), args[0], cmd.OutOrStdout())
		}),
		hidden(drill.WorkerCommand, 2, func(cmd *cobra.Command, args []string) error {
			return drill.Work(cmd.Context(), args[0], args[1], args[2:])
		}),
		hidden(drill.ProgramCommand, 4, func(_ *cobra.Command, args []string) error {
			return drill.Become(args[0], args[1], args[2], args[3:])
		}),
	}
}

// helpCommand is gorun help, which prints the same as --help, and gorun help flags.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [flags|command]", DisableFlagsInUseLine: true, Short: "Print the help of gorun, all its flags, or the help of a command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(commandNames(), aboutAllFlags), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about := root
			switch {
			case len(args) > 0 && args[0] == aboutAllFlags:
				cmd.Print(flagsHelp())
				return nil
			case len(args) > 0:
				if about, _, _ = root.Find(args[:1]); about == root { // which takes any arguments
					return usagef("%s: no such command%s: gorun --help lists all", quote(args[0]), didYouMean(args[0], commandNames()))
				}
			}
			return about.Help()
		},
	}
}

// aboutAllFlags is what gorun help lists all flags for.
const aboutAllFlags = "flags"

// commandNames are the names of gorun's commands.
func commandNames() []string {
	names := []string{"run"}
	for _, u := range usages[1:] {
		names = append(names, strings.Fields(u.line)[1])
	}
	return names
}

// printCommand returns a command that prints a text.
func printCommand(name, short string, text func() string) *cobra.Command {
	return &cobra.Command{
		Use: name, DisableFlagsInUseLine: true, Short: short, Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		Run: func(cmd *cobra.Command, _ []string) { _, _ = fmt.Fprint(cmd.OutOrStdout(), text()) },
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("it takes no arguments; to run a program with this name, write gorun -- %s", cmd.Name())
	}
	return nil
}

var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion " + strings.Join(shells, "|"), DisableFlagsInUseLine: true,
		Short: "Print the completion script for a shell", Example: "source <(gorun completion bash)", ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("want %s", anyOf(shells))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return usagef("%s: want %s%s", quote(args[0]), anyOf(shells), didYouMean(args[0], shells))
			}
		},
	}
}
