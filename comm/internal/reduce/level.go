package reduce

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A level is all that this package computes, for one kind of processor.
type level struct {
	name             string
	combine          [numTypes][numOps]Kernel
	accumulate       [numTypes][numOps]func(acc []float32, src []byte)
	widen            [numTypes]func(dst []float32, src []byte)
	narrow           [numTypes]func(dst []byte, src []float32)
	multiply, divide [numTypes]func(v []byte, by float64)
}

// current is the level of this process, and wrongLevel the error of choose.
var current, wrongLevel = func() (*level, error) {
	name, err := choose(os.Getenv("GORUN_KERNELS"), levels())
	return newLevel(name), err
}()

// Level is the name of the level in use. The error says that GORUN_KERNELS asks for one that this machine has not.
func Level() (string, error) { return current.name, wrongLevel }

// choose returns the one of levels that is wanted, else the last.
func choose(wanted string, levels []string) (string, error) {
	best := levels[len(levels)-1]
	switch {
	case wanted == "":
		return best, nil
	case slices.Contains(levels, wanted):
		return wanted, nil
	}
	return best, fmt.Errorf("GORUN_KERNELS=%s: this machine has %s", wanted, strings.Join(levels, ", "))
}
