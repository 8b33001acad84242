package workergroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher"
)

const (
	socketVariable = "GORUN_ROUND_SOCKET"
	roundVariable  = "GORUN_ROUND"
)

// setVariable returns an environment in which a variable has another value.
func setVariable(environ []string, name, value string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(environ, name+"="+value)
}

// workerVariables returns the variables of package env in an environment, with their values.
func workerVariables(environ []string) map[string]string {
	names, values := env.Names(), make(map[string]string)
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); slices.Contains(names, name) {
			values[name] = value
		}
	}
	return values
}

// roundOf returns the number of the round that a worker is to be in.
func roundOf(w launcher.WorkerSpec) (int, error) {
	round, err := strconv.Atoi(workerVariables(w.Env)[roundVariable])
	if err != nil {
		return 0, fmt.Errorf("workergroup: rank %d has no number of a round: %w", w.Rank, err)
	}
	return round, nil
}
