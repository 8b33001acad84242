package launch

import (
	"slices"
	"strings"
)

// passedPrefixes begin the names of the variables that a job gets from the launcher's environment: gorun's, torchrun's, and those of the
// libraries that jobs use. All others are the host's own, as its login shell sets them.
var passedPrefixes = []string{
	"GORUN_", "PET_", "TORCH", "PYTORCH_", "PYTHON", "NCCL_", "RCCL_", "GLOO_", "UCX_", "FI_", "OMP_", "KMP_", "MKL_", "LC_",
}

// passedNames are more of them.
var passedNames = []string{"LANG", "LOGLEVEL", "NO_COLOR"}

// ownNames are variables that mean this machine or this command, and so are not passed on although they begin like others.
var ownNames = []string{"GORUN_COMM_ADDR", "GORUN_TOKEN", "PET_NODE_RANK", "PET_RDZV_TOKEN_FILE", "PET_WDIR", "PET_ENV", "PET_ENV_FILE", "PET_DRY_RUN", "PET_JSON"}

// Environ returns the variables of environ that a job gets on its hosts. Values are lists of NAME=value.
func Environ(environ []string) (list []string) {
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if ok && !slices.Contains(ownNames, name) && (slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, begins)) {
			list = append(list, kv)
		}
	}
	return list
}
