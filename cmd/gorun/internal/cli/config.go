package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gorun/gorun/cmd/gorun/internal/configfile"
)

// notInConfig are names that people may write into a config file, and why they have no place there.
var notInConfig = map[string]string{
	"help": "it is for the command line", "version": "it is for the command line", "config": "a config file cannot name another",
	"program": programBehind, "script": programBehind, "command": programBehind, "args": programBehind,
}

// ofLaunch are the flags that only gorun launch has.
var ofLaunch = []string{"hosts", "hostfile", "rsh", "remote-path", "copy", "connect-timeout", "heartbeat-timeout"}

const programBehind = "the program and its arguments are on the command line, behind gorun's flags"

// load gives the flags of cmd what the file of --config says, if there is one. What is on the command line overrides it; of a flag that
// may be given several times, both count, and the command line comes last. load returns where each flag is in the file, such as
// "job.yaml:3: nnodes".
func (vs values) load(cmd *cobra.Command, h host) (places map[string]string, err error) {
	file, given := vs.text(h, "config")
	if !given {
		return nil, nil
	}
	source := "--config"
	if vs.named("config").texts == nil {
		source = "PET_CONFIG"
	}
	unreadable := func(err error) error { return usagef("%s=%s: %w", source, quote(file), cause(err)) }
	r, err := os.Open(file)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	settings, err := configfile.Parse(quote(file), r)
	if is[*os.PathError](err) {
		return nil, unreadable(err)
	} else if err != nil {
		return nil, usagef("%w", err)
	}
	places = make(map[string]string)
	for _, s := range settings {
		f, err := flagOf(cmd, s.Name)
		if err == nil {
			err = setFrom(quote(file), f, s)
		}
		if err != nil {
			return nil, usagef("%s:%d: %w", quote(file), s.Line, err)
		}
		places[s.Name] = fmt.Sprintf("%s:%d: %s", quote(file), s.Line, s.Name)
	}
	return places, nil
}

// flagOf returns the flag of cmd with exactly this name.
func flagOf(cmd *cobra.Command, name string) (*pflag.Flag, error) {
	if why := notInConfig[name]; why != "" {
		return nil, fmt.Errorf("%s: %s", name, why)
	}
	f := cmd.Flags().Lookup(name) // it also finds a name by its beginning
	if f != nil && f.Name == name {
		return f, nil
	}
	if strings.Contains(strings.ToLower(name), "token") {
		return nil, fmt.Errorf("%s: a config file holds no secrets: put the token into a file that only you can read, and its name here, as rdzv-token-file", quote(name))
	}
	if slices.Contains(ofLaunch, name) {
		return nil, fmt.Errorf("%s is a flag of gorun launch: start the job with gorun launch, or leave it out", name)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := nearest(name, names)
	if f != nil {
		near = f.Name
	}
	if near == "" {
		return nil, fmt.Errorf("no flag is named %q: %s --help lists all", name, cmd.CommandPath())
	}
	return nil, fmt.Errorf("no flag is named %q: did you mean %s?", name, near)
}

// setFrom gives a flag what the file says, unless the command line overrides it.
func setFrom(file string, f *pflag.Flag, s configfile.Setting) error {
	v, isRow := f.Value.(*value)
	repeats := isRow && v.flag.repeats
	texts, err := textsFor(f, s, repeats)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", s.Name, err)
	case f.Changed && !repeats:
		return nil
	case !isRow:
		if err := f.Value.Set(texts[0]); err != nil {
			return fmt.Errorf("%s=%s: %w", s.Name, quote(texts[0]), err)
		}
		return nil
	}
	v.texts, v.places = append(texts, v.texts...), []string{fmt.Sprintf("%s:%d", file, s.Line)}
	if repeats {
		v.places = nil
		for _, item := range s.Items {
			v.places = append(v.places, fmt.Sprintf("%s:%d", file, item.Line))
		}
	}
	return nil
}

// textsFor returns what the command line would have for the flag: a text, or several if the flag repeats. A list, or a map, is for a flag
// that repeats, or has values with commas between.
func textsFor(f *pflag.Flag, s configfile.Setting, repeats bool) ([]string, error) {
	form := f.Value.Type()
	commas := strings.HasSuffix(form, ",...")
	switch {
	case s.Form == configfile.Map && !strings.Contains(form, "="):
		return nil, fmt.Errorf("want a value, not names with values")
	case s.Form == configfile.List && !repeats && !commas:
		return nil, fmt.Errorf("want a single value: put it in quotes if it begins with [")
	}
	texts := make([]string, 0, len(s.Items))
	for _, item := range s.Items {
		if s.Form != configfile.Text && commas && strings.Contains(item.Text, ",") {
			return nil, fmt.Errorf("%s: a value in a list cannot have a comma: write the list as one text, as on the command line", quote(item.Text))
		}
		texts = append(texts, item.Text)
	}
	if !repeats {
		texts = []string{strings.Join(texts, ",")}
	}
	return texts, nil
}
