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

// A flag is one row of the table (flagtable.go): a flag of the command line, and the variable that holds its default.
// Help, completions, the manual page and tests are made from the table.
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
	hosting      string // usage in gorun etcd; empty: it does not have it
	perNode      bool   // gorun launch gives each node a value of its own, or uses the flag itself
	unmistakable bool   // hardly any program has a flag of this name: behind the program, it is misplaced

	set func(*flags, string) error // the error says what is wanted
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

// A commandLine is the flags that a command has, in the order of the table, and what its user has written for them.
// They are parsed only when all are known, so that an error can say where a value came from.
type commandLine []*written

// A written is a pflag.Value that only remembers.
type written struct {
	flag  *flag
	texts []string // one, or nil if the flag is not there; more if it repeats
}

func (w *written) Set(text string) error {
	if !w.flag.repeats {
		w.texts = nil
	}
	w.texts = append(w.texts, text)
	return nil
}
func (w *written) String() string { return strings.Join(w.texts, ",") }
func (w *written) Type() string   { return w.flag.value }

// newCommandLine returns a command line with the flags that are chosen; nil: with all.
func newCommandLine(chosen func(*flag) bool) (list commandLine) {
	for i := range table {
		if f := &table[i]; chosen == nil || chosen(f) {
			list = append(list, &written{flag: f})
		}
	}
	return list
}

func (c commandLine) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the program is the program's
	flags.BoolP("help", "h", false, aboutHelp)
	flags.Bool("version", false, aboutVersion)
	c.add(cmd, (*flag).usage)
}

// add adds the flags to the command. about is what its help says of a flag; empty: what gorun's says.
func (c commandLine) add(cmd *cobra.Command, about func(*flag) string) {
	flags := cmd.Flags()
	flags.SetNormalizeFunc(normalize)
	for _, w := range c {
		f := flags.VarPF(w, w.flag.name, w.flag.short, cmp.Or(about(w.flag), w.flag.usage()))
		complete := cobra.FixedCompletions(w.flag.choices, cobra.ShellCompDirectiveNoFileComp)
		switch w.flag.value {
		case "":
			f.NoOptDefVal = "1"
			complete = cobra.NoFileCompletions
		case "FILE":
			complete = nil
		case "DIR":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(w.flag.name, complete) // fails for a flag that is not there, or twice
		}
	}
}

// values are what is given for flags, by their names: the texts, and where they come from.
type values map[string]value

// A value is what is given for one flag.
type value struct {
	texts []string
	from  string // "--name", or a variable
}

// values returns what is on the command line, or else in the environment.
func (c commandLine) values(lookup func(string) (string, bool)) values {
	v := make(values)
	for _, w := range c {
		if w.texts != nil {
			v[w.flag.name] = value{w.texts, "--" + w.flag.name}
			continue
		}
		for _, variable := range []string{w.flag.env(), w.flag.alias} {
			if text, ok := lookup(variable); ok && variable != "" {
				texts := []string{text}
				if w.flag.repeats {
					texts = lines(text)
				}
				v[w.flag.name] = value{texts, variable}
				break
			}
		}
	}
	return v
}

// text returns the value of a flag that does not repeat; empty: there is none.
func (v values) text(name string) string {
	if g, ok := v[name]; ok {
		return g.texts[0]
	}
	return ""
}

// has reports whether a flag has a value.
func (v values) has(name string) bool { _, ok := v[name]; return ok }

// orElse sets a flag that has no value.
func (v values) orElse(name, text string) {
	if !v.has(name) {
		v[name] = value{[]string{text}, "--" + name}
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

// options parses and checks every value.
func (v values) options(h host) (*options, error) {
	o, err := v.parse(h)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// parse parses every value. It does not check whether they are compatible. The variables of workers come first (only
// their flags repeat), because some of them say which devices workers see.
func (v values) parse(h host) (*options, error) {
	o := &options{flags: *defaults(h)}
	for _, first := range []bool{true, false} {
		for i := range table {
			if f := &table[i]; f.repeats == first {
				if err := o.set(f, v[f.name]); err != nil {
					return nil, err
				}
			}
		}
	}
	if token, ok := h.lookup("GORUN_TOKEN"); ok {
		o.token = token
	}
	return o, nil
}

// set parses the value of a flag; none: the default stays.
func (o *flags) set(f *flag, g value) error {
	for _, text := range g.texts {
		shown := text
		if f.repeats {
			shown, _, _ = strings.Cut(text, "=")
		}
		if g.from != "--"+f.name {
			o.settings = append(o.settings, g.from+"="+quote(shown))
		}
		if len(shown) > maxShown {
			shown = strings.ToValidUTF8(shown[:maxShown], "") + "..."
		}
		o.given[f.name] = g.from + "=" + quote(shown)
		if err := f.set(o, text); err != nil {
			return usagef("%s: %w", o.given[f.name], err)
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

// removedVariables are the defaults of flags that gorun has no more: a job that was started with one would run
// otherwise without a word.
var removedVariables = []string{"PET_CONFIG", "PET_EVENT_LOG_HANDLER", "PET_PREFLIGHT"}

// unknownVariables returns a warning for each PET_ variable that belongs to no flag but did once, or looks like a
// misspelling of one that does.
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
		if slices.Contains(removedVariables, name) {
			warnings = append(warnings, name+" is ignored: gorun has no such flag any more")
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
