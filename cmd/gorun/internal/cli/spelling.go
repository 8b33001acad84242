package cli

import (
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fullName returns the name of the flag that the text after the dashes means: underscores count as dashes, and an
// unambiguous beginning of a name is enough. Torchrun's names come first, so that torchrun's abbreviations mean the
// same here. If the text means no flag, or several, fullName returns it unchanged.
func fullName(written string) string {
	name := strings.ReplaceAll(written, "_", "-")
	if found := candidates(name); len(found) == 1 {
		return found[0]
	}
	return name
}

// candidates returns the flags that name may mean: the flag with exactly this name, or else all of torchrun's flags
// that begin with it, or else all other flags that do.
func candidates(name string) (found []string) {
	var own []string
	for _, f := range flagNames() {
		switch {
		case f.name == name:
			return []string{name}
		case name == "" || !strings.HasPrefix(f.name, name):
		case f.own:
			own = append(own, f.name)
		default:
			found = append(found, f.name)
		}
	}
	if len(found) == 0 {
		return own
	}
	return found
}

type flagName struct {
	name string
	own  bool
}

// flagNames is cached because pflag normalizes names often.
var flagNames = sync.OnceValue(func() []flagName {
	names := []flagName{{name: "help"}, {name: "version", own: true}}
	for i := range table {
		names = append(names, flagName{table[i].name, table[i].own})
	}
	return names
})

// flagError rewords an error that pflag found in the flags of a command.
func flagError(cmd *cobra.Command, err error) error {
	isJob := !cmd.HasParent() || cmd.Name() == "run" // it has all flags of the table, and no others
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	valueless, isValueless := errors.AsType[*pflag.ValueRequiredError](err)
	switch {
	case isUnknown && isJob && unknown.GetSpecifiedShortnames() != "":
		return unknownShort(unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames())
	case isUnknown && isJob:
		return unknownFlag(unknown.GetSpecifiedName())
	case isUnknown:
		var names []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		written := unknown.GetSpecifiedName()
		if meant := meantShort(unknown.GetSpecifiedShortnames()); cmd.LocalFlags().Lookup(meant) != nil {
			written = meant
		}
		return usagef("%w%s", err, didYouMean("--"+written, names))
	case isValueless:
		f := valueless.GetFlag()
		return usagef("--%s needs a value, as in --%s=%s: %s", f.Name, f.Name, f.Value.Type(), f.Usage)
	}
	return &usageError{err}
}

// unknownShort returns the error for a letter that is no flag. shorts is the whole text after the dash. It may be a
// long name that lacks its second dash.
func unknownShort(letter, shorts string) error {
	written, _, _ := strings.Cut(shorts, "=")
	if found := candidates(strings.ReplaceAll(written, "_", "-")); len(found) == 1 && len(written) > 1 {
		return usagef("unknown flag -%s: did you mean --%s?", quote(written), found[0])
	}
	if meant := meantShort(shorts); meant != "" {
		return usagef("unknown flag -%s: did you mean --%s?", letter, meant)
	}
	return usagef("unknown flag -%s: gorun help flags lists all", quote(letter))
}

// meantShort returns the flag that someone means who writes a short flag of mpirun or srun, also as in -n2 or -n=2; empty: it is none.
func meantShort(shorts string) string {
	name, _, _ := strings.Cut(shorts, "=")
	return map[string]string{"n": "nproc-per-node", "N": "nnodes"}[strings.TrimRight(name, "0123456789")]
}

func unknownFlag(written string) error {
	name := strings.ReplaceAll(written, "_", "-")
	if found := candidates(name); len(found) > 1 {
		return usagef("--%s may be --%s: write more of it", quote(written), strings.Join(found, " or --"))
	}
	if name == "event-log-handler" {
		return usagef("--%s: gorun does not have this flag of torchrun: --event-log=FILE writes what happens to the job", quote(written))
	}
	var names []string
	for _, f := range flagNames() {
		names = append(names, f.name)
	}
	if near := nearest(name, names); near != "" {
		return usagef("unknown flag --%s: did you mean --%s?", quote(written), near)
	}
	return usagef("unknown flag --%s: gorun help flags lists all", quote(written))
}

// didYouMean returns " (did you mean x?)" for the name nearest to s, or nothing if none is near.
func didYouMean(s string, names []string) string {
	if near := nearest(s, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// nearest returns the name that s misspells, or nothing. At most one letter in three may be wrong.
func nearest(s string, names []string) (name string) {
	least := math.MaxInt
	for _, n := range names {
		if d := distance(strings.ToLower(s), strings.ToLower(n)); d < least && d <= max(len(s), len(n))/3 {
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
