package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/systemd"
	"github.com/gorun/gorun/env"
)

// maxEnvFile is the greatest length of an --env-file in bytes.
const maxEnvFile = 1 << 20

var errNotHere = errors.New("there is no such variable here: want NAME=VALUE")

// setEnv adds a variable of the workers: NAME=VALUE, or NAME with gorun's own value.
func setEnv(o *flags, text string) error {
	name, _, complete := strings.Cut(text, "=")
	if err := checkVariable(name); err != nil {
		return err
	}
	if !complete {
		value, ok := o.host.lookup(name)
		if !ok {
			return errNotHere
		}
		text = name + "=" + value
	}
	o.variables = append(o.variables, text)
	return nil
}

// setEnvFile adds the variables in a file.
func setEnvFile(o *flags, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return errors.New(agent.Bare(err).Error())
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	if err != nil {
		return errors.New(agent.Bare(err).Error())
	}
	variables, err := parseEnvFile(text, o.host.lookup)
	o.variables = append(o.variables, variables...)
	return err
}

// parseEnvFile returns the variables in a file for docker's --env-file. Each line is NAME=VALUE, or NAME, which means the variable that
// lookup finds. docker skips a NAME that it does not find; that is an error here, as with --env. Blank lines and those that begin with # mean nothing. All of a line behind the equals sign is the
// value: there are no quotes, escapes or comments.
func parseEnvFile(text []byte, lookup func(string) (string, bool)) (variables []string, err error) {
	switch {
	case len(text) > maxEnvFile:
		return nil, fmt.Errorf("the file is longer than %d bytes", maxEnvFile)
	case !utf8.Valid(text):
		return nil, errors.New("the file is not UTF-8")
	}
	number := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(text, []byte("\uFEFF")))) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, complete := strings.Cut(line, "=")
		if err := checkVariable(name); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("line %d: the value of %s has a NUL byte", number, name)
		}
		if !complete {
			if value, complete = lookup(name); !complete {
				return nil, fmt.Errorf("line %d: %s: %w", number, name, errNotHere)
			}
		}
		variables = append(variables, name+"="+value)
	}
	return variables, nil
}

// checkVariable refuses what cannot be the name of a variable, and the variables that gorun sets for each worker.
func checkVariable(name string) error {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("%.40q cannot be the name of a variable: want NAME=VALUE", name)
	case slices.Contains(env.Names(), name), name == commAddr:
		return fmt.Errorf("gorun itself sets %s for the workers", name)
	}
	return nil
}

// variable returns a variable that --env or --env-file sets.
func (o *flags) variable(name string) (value string, set bool) {
	for _, kv := range slices.Backward(o.variables) {
		if value, set = strings.CutPrefix(kv, name+"="); set {
			return value, true
		}
	}
	return "", false
}

// lookup returns a variable that workers get, unless gorun sets it for them.
func (o *flags) lookup(name string) (string, bool) {
	if value, set := o.variable(name); set {
		return value, true
	}
	return o.host.lookup(name)
}

const (
	numThreads   = "OMP_NUM_THREADS"
	faultHandler = "PYTHONFAULTHANDLER"
)

// environ returns the environment that workers inherit: own, which is gorun's, and what the user has added. Several workers that each start a
// thread for every core slow each other down, so, as in torchrun, each gets one thread. If the user has given the address at which others
// reach the workers, they get it, also if it is not an address of this machine: then comm.Init fails, and a program without comm does not
// need it. Python prints the stacks of a worker that crashes, or that hangs and gets SIGABRT.
func (o *flags) environ(own []string, threads int) []string {
	environ := env.Merge(systemd.WithoutVariables(own), o.variables)
	unset := func(name string) {
		environ = slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	unset(commAddr)
	if o.localAddr != "" && o.nnodes > 1 {
		environ = append(environ, commAddr+"="+o.localAddr)
	}
	isSet := func(name string) bool {
		return slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if !isSet(faultHandler) {
		environ = append(environ, faultHandler+"=1")
	}
	switch {
	case threads > 0:
		unset(numThreads)
	case o.nproc == 1 || isSet(numThreads):
		return environ
	default:
		threads = 1
	}
	return append(environ, numThreads+"="+strconv.Itoa(threads))
}
