package env

import (
	"fmt"
	"os"
	"strconv"
)

// Environ returns "NAME=value" for every variable of the table, in its order. It includes empty values, which
// hide those that an outer launcher may have left in the environment.
func (w Worker) Environ() []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name + "=" + f.get(&w)
	}
	return out
}

// Names returns the names of the variables, in the order of the table.
func Names() []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// Parse reads a Worker through lookup, which works like [os.LookupEnv]. RANK, WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT must be set; fields of other variables that are not set stay zero. The error is an [*Error].
func Parse(lookup func(string) (string, bool)) (Worker, error) {
	var w Worker
	values := make(map[string]string, len(fields))
	for _, f := range fields {
		value, ok := lookup(f.name)
		if !ok {
			if f.required {
				return Worker{}, f.fail("", true)
			}
			continue
		}
		if !f.set(&w, value) {
			return Worker{}, f.fail(value, false)
		}
		values[f.name] = value
	}
	if err := checkBelow(values); err != nil {
		return Worker{}, err
	}
	return w, nil
}

// FromOS reads the environment of this process.
func FromOS() (Worker, error) { return Parse(os.LookupEnv) }

// checkBelow compares every number with its size. A size that is absent or 0 is unknown.
func checkBelow(values map[string]string) error {
	for _, f := range fields {
		value, given := values[f.name]
		if f.below == "" || !given {
			continue
		}
		n, _ := strconv.Atoi(value)
		size, _ := strconv.Atoi(values[f.below])
		if size > 0 && n >= size {
			return &Error{Name: f.name, Value: value, Want: fmt.Sprintf("a number below %s=%d", f.below, size)}
		}
	}
	return nil
}

func (f field) fail(value string, missing bool) *Error {
	if f.secret {
		value = hiddenValue
	}
	return &Error{Name: f.name, Value: value, Missing: missing, Want: f.want}
}

const (
	hiddenValue = "(hidden)"
	maxShown    = 64 // bytes of a bad value that are worth a line
)

// An Error says which variable is wrong, what its value is, and what is wanted.
type Error struct {
	Name    string // of the variable
	Value   string // as found; "(hidden)" for a secret
	Missing bool   // the variable is not set at all
	Want    string
}

// Error returns one line, whatever the value contains.
func (e *Error) Error() string {
	if e.Missing {
		return fmt.Sprintf("env: %s is not set: want %s; start the program with gorun --nproc-per-node N PROGRAM", e.Name, e.Want)
	}
	value := e.Value
	if len(value) > maxShown {
		value = value[:maxShown] + "..."
	}
	if value == "" || !isGraphic(value) {
		value = strconv.Quote(value)
	}
	return fmt.Sprintf("env: %s=%s: want %s", e.Name, value, e.Want)
}
