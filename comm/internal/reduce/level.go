package reduce

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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

// inUse is the level of this process, made when it is first needed. The error is that of choose.
var inUse = sync.OnceValues(func() (*level, error) {
	name, err := choose(os.Getenv("GORUN_KERNELS"), levels())
	return newLevel(name), err
})

// Level is the name of the level in use. The error says that GORUN_KERNELS asks for one that this machine has not.
func Level() (string, error) {
	l, err := inUse()
	return l.name, err
}

func current() *level {
	l, _ := inUse()
	return l
}

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
