package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const summary = "start copies of a program on this and other machines, tell each who it is, and keep them alive"

const aboutProgram = "program is an executable, a Python script (x.py, or a file that begins with #! and names python), " +
	"a Go package directory or a .go file. What follows it is its own."

const aboutFlags = "Every flag --a-b may be written --a_b, or shorter as long as it is clear, and has its default in $PET_A_B. " +
	"$LOGLEVEL says what gorun itself tells: debug, info, warning, error."

var usages = []string{
	"gorun [flags] program [args...]",
	"gorun etcd --rdzv-endpoint=HOST:PORT",
	"gorun bench [flags] [operation...]",
	"gorun drill [flags] [scenario...]",
	"gorun completion bash|zsh|fish|powershell",
	"gorun man",
	"gorun version",
}

var examples = []struct{ command, about string }{
	{"gorun --nproc-per-node=4 train.py --epochs 3", ""},
	{"gorun --nnodes=2 --node-rank=0 --master-addr=10.0.0.1 --nproc-per-node=8 ./train", "on 10.0.0.1"},
	{"gorun --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --nproc-per-node=8 ./train", "on the other"},
	{"gorun --nnodes=2:4 --rdzv-backend=embedded --rdzv-endpoint=node0 --rdzv-token-file=token ./train", "on each"},
}

var exitCodes = []struct{ code, meaning string }{
	{"0", "all workers exited 0"},
	{"N", "the code of the first worker that failed; 128+S for signal S"},
	{"93", "of a worker that wants no restart"},
	{"2", "usage"},
	{"71", "too few open files, processes or too little memory on this machine"},
	{"75", "no rendezvous"},
	{"126", "the program cannot be executed"},
	{"127", "there is no such program"},
	{"128+S", "gorun got signal S, and not all workers exited 0"},
	{"141", "nobody reads the output any more; the workers were stopped"},
}

// help is the text of --help.
func help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gorun: %s.\n\nUsage:\n", summary)
	for _, u := range usages {
		fmt.Fprintf(&b, "  %s\n", u)
	}
	fmt.Fprintf(&b, "\n%s\n\nExamples:\n", wrap(aboutProgram, 0))
	for _, e := range examples {
		if e.about != "" {
			e.command += "   # " + e.about
		}
		fmt.Fprintf(&b, "  %s\n", e.command)
	}
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
	fmt.Fprintf(&b, "%s: %s.\n\nUsage:\n  %s\n", cmd.CommandPath(), strings.ToLower(cmd.Short[:1])+cmd.Short[1:], cmd.UseLine())
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
