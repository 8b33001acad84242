package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const summary = "start copies of a program on one or more machines, tell each copy its rank, and keep them running"

const aboutProgram = "The program is an executable, a Python script (a .py file, or a file whose first line is #! with python), " +
	"or a Go program (its folder, a .go file, or the import path of a package, such as example.com/module/cmd/train). gorun passes on all arguments that follow the program."

const aboutFlags = "You may write a flag --a-b as --a_b, and shorten it if it stays unambiguous. A flag that is not on the command line has the value " +
	"of the variable PET_A_B. " +
	"LOGLEVEL sets the lowest level that gorun logs: debug, info, warning or error. docs/environment.md in gorun's repository lists all other " +
	"environment variables."

var usages = []struct{ line, about string }{
	{"gorun [run] [flags] program [args...]", "run a job"},
	{"gorun launch [flags] program [args...]", "run a job on several hosts, over ssh"},
	{"gorun bench [flags] [operation...]", "measure how fast ranks communicate"},
	{"gorun drill [flags] [scenario...]", "break jobs on purpose, and check that they recover"},
	{"gorun etcd [flags]", "host an etcd over which the nodes of jobs meet"},
	{"gorun env [flags]", "print what gorun finds on this machine"},
	{"gorun ps", "list your running jobs on this machine"},
	{"gorun status [flags] [job]", "show the nodes, ranks and last events of a running job"},
	{"gorun logs [flags] [job]", "print the last lines of its workers"},
	{"gorun stacks [flags] [job]", "write what its workers are doing to files"},
	{"gorun restart [flags] job", "start its workers again, in a new round"},
	{"gorun scale [flags] job MIN:MAX", "change how many nodes it may have"},
	{"gorun drain [flags] job node", "take one of its nodes out"},
	{"gorun stop [flags] job", "end it"},
	{"gorun help flags", "list all flags, and the exit codes"},
	{"gorun completion bash|zsh|fish|powershell", "print the completion script for a shell"},
	{"gorun man", "print the manual page"},
	{"gorun version [--json]", "print the version, and how gorun was built"},
}

const aboutCommands = "gorun COMMAND --help describes each of these commands, as in gorun status --help."

// examples come first in the help. A test runs them all, with programs that use package comm.
var examples = []struct{ about, command string }{
	{"four workers on this machine", "gorun --nproc-per-node=4 ./train"},
	{"two workers with arguments, restarted up to three times after failures", "gorun --nproc-per-node=2 --max-restarts=3 train.py --epochs 3"},
	{"for several nodes: create a secret, and copy the file to every node", "(umask 077; openssl rand -hex 32 >token)"},
	{"two nodes: run this on node0", "gorun --nnodes=2 --node-rank=0 --master-addr=node0 --rdzv-token-file=token ./train"},
	{"and this on the other node", "gorun --nnodes=2 --node-rank=1 --master-addr=node0 --rdzv-token-file=token ./train"},
	{"two to four nodes, which may come and go: run this on each of them", "gorun --nnodes=2:4 --rdzv-backend=embedded --rdzv-endpoint=node0 --rdzv-token-file=token ./train"},
}

const aboutExamples = "./train and train.py stand for your program, and node0 for one of your machines. " +
	"In a clone of gorun's repository, you can use ./docs/examples/batch as the program."

var exitCodes = []struct{ code, meaning string }{
	{"0", "all workers exited 0"},
	{"N", "the exit code of the worker that failed first, or 128+S if signal S killed it"},
	{"93", "a worker exited with this code, which means that gorun must not restart it"},
	{"1", "something other than a worker failed"},
	{"2", "you have to correct something, such as a flag"},
	{"71", "this machine has too few open files or processes, or too little memory, or fails its health check"},
	{strconv.Itoa(exitRendezvous), "the nodes did not meet"},
	{strconv.Itoa(exitTimeout), "the time of --timeout was over"},
	{"126", "the program cannot be executed"},
	{"127", "there is no such program"},
	{"128+S", "gorun got signal S, and not all workers then exited 0"},
	{"141", "nobody reads the output any more, so gorun stopped the workers"},
}

// The flags that cobra adds.
const (
	aboutHelp    = "print how to use gorun"
	aboutVersion = "print the version"
)

// help is the text of --help: what most people use, in the order in which they come to use it.
func help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gorun: %s.\n\nExamples:\n", summary)
	for _, e := range examples {
		fmt.Fprintf(&b, "  # %s\n  %s\n", e.about, e.command)
	}
	fmt.Fprintf(&b, "\n%s\n\nUsage:\n", wrap(aboutExamples, 0))
	for _, u := range usages {
		fmt.Fprintf(&b, "  %-41s  %s\n", u.line, u.about)
	}
	fmt.Fprintf(&b, "\n%s\n%s\n\nFlags that are used most (gorun help flags lists all):\n", wrap(aboutProgram, 0), wrap(aboutCommands, 0))
	var often []*flag
	for i := range table {
		if table[i].often > 0 {
			often = append(often, &table[i])
		}
	}
	slices.SortFunc(often, func(a, b *flag) int { return cmp.Compare(a.often, b.often) })
	for _, f := range often {
		entry(&b, f.spelling(), f.usage())
	}
	return b.String()
}

// flagsHelp is the text of gorun help flags.
func flagsHelp() string {
	var b strings.Builder
	b.WriteString(wrap(aboutFlags, 0) + "\n")
	group := ""
	for i := range table {
		f := &table[i]
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		entry(&b, f.spelling(), f.usage())
	}
	b.WriteString("\nHelp:\n")
	entry(&b, "-h, --help", aboutHelp)
	entry(&b, "    --version", aboutVersion)
	b.WriteString("\nExit codes:\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-6s %s\n", e.code, e.meaning)
	}
	return b.String()
}

// commandHelp is the help text of a command.
func commandHelp(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n", cmd.CommandPath(), lowerFirst(cmd.Short))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n  %s\n", strings.ReplaceAll(cmd.Example, "\n", "\n  "))
	}
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", cmd.UseLine())
	if cmd.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(cmd.Long, 0))
	}
	heading := "\nArguments:\n"
	for _, arg := range cmd.ValidArgs {
		if name, about, ok := strings.Cut(arg, "\t"); ok {
			b.WriteString(heading)
			heading = ""
			entry(&b, name, about)
		}
	}
	last := ""
	for _, ofTable := range []bool{false, true} { // the command's own flags come first
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			group := "Flags"
			w, ok := f.Value.(*written)
			if f.Name == "help" || f.Hidden || ok != ofTable {
				return
			}
			if ok {
				group = w.flag.group
			}
			if group != last {
				fmt.Fprintf(&b, "\n%s:\n", group)
				last = group
			}
			entry(&b, spelling(f.Name, f.Shorthand, f.Value.Type()), f.Usage)
		})
	}
	return b.String()
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// spelling is how the flag is written in the help.
func (f *flag) spelling() string { return spelling(f.name, f.short, f.value) }

func spelling(name, short, value string) string {
	begin := "    --"
	if short != "" {
		begin = "-" + short + ", --"
	}
	return strings.TrimRight(begin+name+" "+value, " ")
}

const (
	helpColumn = 33
	helpWidth  = 112
)

func entry(b *strings.Builder, name, text string) {
	name = "  " + name
	if len(name) >= helpColumn {
		name += "\n" + strings.Repeat(" ", helpColumn)
	}
	fmt.Fprintf(b, "%-*s%s\n", helpColumn, name, wrap(text, helpColumn))
}

// wrap breaks text at blanks so that its lines fit. It indents all lines but the first.
func wrap(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
