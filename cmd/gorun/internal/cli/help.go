package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// help is the text of --help, made from the table.
func help() string {
	var b strings.Builder
	b.WriteString(`gorun starts copies of a program on this and other machines, tells each who it is, and keeps them alive.

Usage:
  gorun [flags] program [args...]

program is an executable, a Python script (x.py), a Go package directory or a .go file.
What follows it is its own.

Examples:
  gorun --nproc-per-node=4 train.py --epochs 3
  gorun --nnodes=2 --node-rank=0 --master-addr=10.0.0.1 --nproc-per-node=8 ./train   # on 10.0.0.1
  gorun --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --nproc-per-node=8 ./train   # on the other
`)
	group := ""
	for _, f := range table {
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		name := "    --" + f.name
		if f.short != "" {
			name = "-" + f.short + ", --" + f.name
		}
		if f.value != "" {
			name += " " + f.value
		}
		fmt.Fprintf(&b, "  %-31s %s\n", name, f.help)
	}
	b.WriteString(`
Other:
  -h, --help                   this text
      --version                the version

Every flag --a-b may be written --a_b, and has its default in $PET_A_B. $LOGLEVEL: debug, info, warning, error.

Exit codes: 0 all workers exited 0; the code of the first worker that failed, 128+N for signal N; 93 a worker
that wants no restart; 2 usage, 75 no rendezvous, 126 not executable, 127 not found; 128+N gorun got signal N.
`)
	return b.String()
}

// flagError says what pflag found in gorun's words.
func flagError(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef("unknown flag -%s: gorun --help lists all", quote(name))
		}
		if near := nearest(strings.ReplaceAll(name, "_", "-"), flagNames()); near != "" {
			return usagef("unknown flag --%s: did you mean --%s?", quote(name), near)
		}
		return usagef("unknown flag --%s: gorun --help lists all", quote(name))
	}
	if valueless, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := valueless.GetFlag()
		return usagef("--%s needs a value, as in --%s=%s: %s", f.Name, f.Name, f.Value.Type(), f.Usage)
	}
	return usagef("%w", err)
}

func flagNames() (names []string) {
	for _, f := range table {
		names = append(names, f.name)
	}
	return append(names, "help", "version")
}

// didYouMean returns " (did you mean x?)" for the name nearest to s, or nothing if none is near.
func didYouMean(s string, names []string) string {
	if near := nearest(s, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// nearest returns the name that s is a slip of, or nothing: at most one letter in three may be wrong.
func nearest(s string, names []string) (name string) {
	least := len(s)/3 + 1
	for _, n := range names {
		if d := distance(s, n); d < least {
			name, least = n, d
		}
	}
	return name
}

// distance counts the letters to insert, drop or replace to get from a to b (Levenshtein). Cost: len(a)*len(b).
func distance(a, b string) int {
	a = a[:min(len(a), 64)] // whatever was typed
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
