package launcher

import (
	"fmt"
	"strings"
	"time"
)

// Preload says what workers in Python find imported. Each node has an interpreter that imports it once, and forks the workers of every
// round. A worker is what it would be without: only its imports are done.
//
// Where that is not safe, or does not work, Spec.Warn gets the reason, and the workers start without it: a module cannot be imported within
// a minute, leaves a thread, a process, an open file or an open GPU behind, sets or uses
// random numbers, or reads a variable that is each worker's own.
type Preload struct {
	Modules []string      // "auto" stands for those that the program imports at its top level and that are installed
	Env     []string      // what the environments of all workers have in common
	Strict  bool          // workers do not start without it: Start returns a *PreloadError
	limit   time.Duration // for all imports; 0: a minute
}

// PreloadError says why workers cannot be preloaded.
type PreloadError struct{ Reason string }

func (e *PreloadError) Error() string { return e.Reason }

// CheckPreload returns an error if workers of p cannot find these modules imported, whatever the modules do.
func (p *Program) CheckPreload(modules []string) error {
	if !p.Python {
		return fmt.Errorf("--preload is for programs in Python, and %s is none", p.Argv[0])
	}
	for _, word := range p.Argv[1:] {
		if !strings.HasPrefix(word, "-") || word == "-m" || word == "-c" {
			break
		}
		if strings.ContainsAny(word, "EIS") && !strings.HasPrefix(word, "--") && !strings.HasPrefix(word, "-X") && !strings.HasPrefix(word, "-W") {
			return fmt.Errorf("--preload does not work with Python's option %s, which the program's first line has", word)
		}
	}
	for _, name := range modules {
		if !moduleName(name) {
			return fmt.Errorf("--preload: %q is not the name of a module, like torch or torch.distributed", name)
		}
	}
	return nil
}
