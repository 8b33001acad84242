package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const summary = "start copies of a program on this and other machines, tell each copy who it is, and keep them running"

const aboutProgram = "The program is an executable, a Python script (x.py, or a file whose first line is #! with python), " +
	"the folder of a Go program or a .go file. gorun passes it all arguments that follow it."

const aboutFlags = "You may write a flag --a-b as --a_b, or shorten it as long as it stays clear. $PET_A_B sets its default. " +
	"$LOGLEVEL sets how much gorun logs: debug, info, warning or error. docs/environment.md lists all variables."

var usages = []string{
	"gorun [flags] program [args...]",
	"gorun etcd --rdzv-endpoint=HOST:PORT",
	"gorun bench [flags] [operation...]",
	"gorun drill [flags] [scenario...]",
	"gorun completion bash|zsh|fish|powershell",
	"gorun man",
	"gorun version",
}

// examples come first in the help. A test runs all of them, with programs that use package comm.
var examples = []struct{ about, command string }{
	{"four workers on this machine", "gorun --nproc-per-node=4 ./train"},
	{"two, with arguments, started again up to three times after a failure", "gorun --nproc-per-node=2 --max-restarts=3 train.py --epochs 3"},
	{"for several nodes: a secret, which you copy to every node", "(umask 077; openssl rand -hex 32 >token)"},
	{"two nodes: this on node0", "gorun --nnodes=2 --node-rank=0 --master-addr=node0 --rdzv-token-file=token ./train"},
	{"and this on the other", "gorun --nnodes=2 --node-rank=1 --master-addr=node0 --rdzv-token-file=token ./train"},
	{"two to four nodes, which may come and go: this on each of them", "gorun --nnodes=2:4 --rdzv-backend=embedded --rdzv-endpoint=node0 --rdzv-token-file=token ./train"},
}

const aboutExamples = "./train and train.py stand for your program, and node0 for one of your machines. " +
	"In a clone of gorun's repository, ./docs/examples/batch will do for ./train."

var exitCodes = []struct{ code, meaning string }{
	{"0", "all workers exited 0"},
	{"N", "the code of the first worker that failed; 128+S for signal S"},
	{"93", "a worker that exits with it is not started again"},
	{"2", "you have to correct something, such as a flag"},
	{"71", "this machine has too few open files or processes, or too little memory"},
	{strconv.Itoa(exitRendezvous), "the nodes did not meet"},
	{"126", "the program cannot be executed"},
	{"127", "there is no such program"},
	{"128+S", "gorun got signal S, and not all workers exited 0"},
	{"141", "nobody reads the output any more, so gorun stopped the workers"},
}

// help is the text of --help.
func help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gorun: %s.\n\nExamples:\n", summary)
	for _, e := range examples {
		fmt.Fprintf(&b, "  # %s\n  %s\n", e.about, e.command)
	}
	fmt.Fprintf(&b, "\n%s\n\nUsage:\n", wrap(aboutExamples, 0))
	for _, u := range usages {
		fmt.Fprintf(&b, "  %s\n", u)
	}
	fmt.Fprintf(&b, "\n%s\n", wrap(aboutProgram, 0))
	group := ""
	for i := range table {
		f := &table[i]
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		entry(&b, f.spelling(), f.help)
	}
	b.WriteString("\nOther:\n")
	entry(&b, "-h, --help", "this text")
	entry(&b, "    --version", "the version")
	fmt.Fprintf(&b, "\n%s\n\nExit codes:\n", wrap(aboutFlags, 0))
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-6s %s\n", e.code, e.meaning)
	}
	return b.String()
}

// commandHelp is the text of --help of a command that stands instead of a program.
func commandHelp(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n", cmd.CommandPath(), strings.ToLower(cmd.Short[:1])+cmd.Short[1:])
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
	heading = "\nFlags:\n"
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		b.WriteString(heading)
		heading = ""
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		value, text := pflag.UnquoteUsage(f)
		entry(&b, strings.TrimSpace(name+" "+value), text)
	})
	return b.String()
}

// spelling is how the flag is written in the help.
func (f *flag) spelling() string {
	name := "    --" + f.name
	if f.short != "" {
		name = "-" + f.short + ", --" + f.name
	}
	if f.value != "" {
		name += " " + f.value
	}
	return name
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

// wrap breaks text at blanks, so that its lines fit beside an indent that all but the first begin with.
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
