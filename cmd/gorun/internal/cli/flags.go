package cli

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag is one row of the table (flagtable.go): a flag of the command line, and the variable that holds its default. Help,
// completions, the manual page and tests are made from the table.
type flag struct {
	group   string   // heading in the help
	name    string   // --name; every - may be written _
	short   string   // one letter, or empty
	value   string   // what stands for the value in the help; empty: the flag is a switch
	choices []string // the values there are, or those with a name; nil: any
	help    string
	def     string // the value if nobody gives one; empty: none, or help says what then
	alias   string // a variable that counts if neither the flag nor its PET_ variable is given; or empty
	own     bool   // torchrun has no such flag: its abbreviations give way to torchrun's
	repeats bool   // may be given several times; its variable has a value in each line. Errors show only what is before an equals sign

	often        int    // place in gorun --help, from 1; 0: only gorun help flags has it
	launch       string // usage in gorun launch, if that is another
	running      string // usage in the commands about running jobs; empty: they do not have it
	perNode      bool   // gorun launch gives each node a value of its own, or uses the flag itself
	unmistakable bool   // hardly any program has a flag of this name: behind the program, it is misplaced

	set func(*options, string) error // the error says what is wanted
}

// flagNamed returns the flag with exactly this name; nil: there is none.
func flagNamed(name string) *flag {
	if i := slices.IndexFunc(table, func(f flag) bool { return f.name == name }); i >= 0 {
		return &table[i]
	}
	return nil
}

// usage says what the flag means, and its default.
func (f *flag) usage() string {
	if f.def == "" {
		return f.help
	}
	return f.help + " (default " + quote(f.def) + ")"
}

// env names the variable that holds the default: torchrun's PET_, then the flag's name.
func (f *flag) env() string {
	return "PET_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
}

// values holds the command line's values, by row of the table. They are parsed only when all are known, so
// that an error can say where its value came from.
type values []*value

// A value is a pflag.Value that only remembers.
type value struct {
	flag  *flag
	texts []string // one, or nil if the flag is not given; more if it repeats
}

func (v *value) Set(text string) error {
	if !v.flag.repeats {
		v.texts = nil
	}
	v.texts = append(v.texts, text)
	return nil
}
func (v *value) String() string { return strings.Join(v.texts, ",") }
func (v *value) Type() string   { return v.flag.value }

// newValues returns values for the flags that are chosen; nil: for all.
func newValues(chosen func(*flag) bool) (vs values) {
	for i := range table {
		if f := &table[i]; chosen == nil || chosen(f) {
			vs = append(vs, &value{flag: f})
		}
	}
	return vs
}

func (vs values) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the program is the program's
	flags.BoolP("help", "h", false, aboutHelp)
	flags.Bool("version", false, aboutVersion)
	vs.add(cmd, (*flag).usage)
}

// add adds the flags to the command. about is what its help says of a flag; empty: what gorun's says.
func (vs values) add(cmd *cobra.Command, about func(*flag) string) {
	flags := cmd.Flags()
	flags.SetNormalizeFunc(normalize)
	for _, v := range vs {
		f := flags.VarPF(v, v.flag.name, v.flag.short, cmp.Or(about(v.flag), v.flag.usage()))
		complete := cobra.FixedCompletions(v.flag.choices, cobra.ShellCompDirectiveNoFileComp)
		switch v.flag.value {
		case "":
			f.NoOptDefVal = "1"
			complete = cobra.NoFileCompletions
		case "FILE":
			complete = nil
		case "DIR":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(v.flag.name, complete) // fails for a flag that is not there, or twice
		}
	}
}

func normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(fullName(name))
}

// A host is what gorun reads of the machine that it runs on, apart from the command line.
type host struct {
	lookup func(string) (string, bool) // as os.LookupEnv
	root   fs.FS                       // the file system, from /

	launched bool // gorun launch decides which nodes there are, and no resource manager

	hostname   func() (string, error) // as os.Hostname
	hasProgram func(name string) bool // on PATH
}

// options parses and checks every value, from the command line, or else from the environment.
func (vs values) options(h host) (*options, error) {
	o, err := vs.parse(h)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// parse parses every value. It does not check whether they are compatible. The variables of workers come first, because some of them say
// which devices workers see.
func (vs values) parse(h host) (*options, error) {
	o := defaults(h)
	for _, first := range []bool{true, false} {
		for _, v := range vs {
			if v.flag.repeats != first {
				continue
			}
			if err := v.parse(o, h); err != nil {
				return nil, err
			}
		}
	}
	if token, ok := h.lookup("GORUN_TOKEN"); ok {
		o.token = token
	}
	return o, nil
}

// parse sets what the flag was given on the command line, or else by its variables.
func (v *value) parse(o *options, h host) error {
	texts, variable := v.texts, ""
	for _, name := range []string{v.flag.env(), v.flag.alias} {
		if texts != nil || name == "" {
			continue
		}
		if text, ok := h.lookup(name); ok {
			texts, variable = []string{text}, name
			if v.flag.repeats {
				texts = lines(text)
			}
		}
	}
	for _, text := range texts {
		shown := text
		if v.flag.repeats {
			shown, _, _ = strings.Cut(text, "=")
		}
		from := "--" + v.flag.name
		if variable != "" {
			from = variable
			o.settings = append(o.settings, variable+"="+quote(shown))
		}
		if len(shown) > maxShown {
			shown = strings.ToValidUTF8(shown[:maxShown], "") + "..."
		}
		o.given[v.flag.name] = from + "=" + quote(shown)
		if err := v.flag.set(o, text); err != nil {
			return usagef("%s: %w", o.given[v.flag.name], err)
		}
	}
	return nil
}

const maxShown = 300 // bytes of a value that errors show

// lines returns the lines of a text that are not blank.
func lines(text string) (list []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			list = append(list, line)
		}
	}
	return list
}

// unknownVariables returns a warning for each PET_ variable that belongs to no flag but looks like a misspelling of one that does.
func unknownVariables(environ []string) (warnings []string) {
	var names []string
	for i := range table {
		names = append(names, table[i].env())
	}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PET_") {
			continue
		}
		if near := nearest(name, names); near != "" && near != name {
			warnings = append(warnings, fmt.Sprintf("%s is not the default of any flag: did you mean %s?", quote(name), near))
		}
	}
	return warnings
}

// A usageError is a mistake in the command line. Its text is one line, and nothing has been started.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
