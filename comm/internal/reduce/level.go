package reduce

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// A level has all functions of this package for one kind of processor.
type level struct {
	name             string
	combine          [numTypes][numOps]Kernel
	accumulate       [numTypes][numOps]func(acc []float32, src []byte)
	folds            [numTypes][numOps]func(dst []byte, srcs [][]byte) // by accumulate
	widen            [numTypes]func(dst []float32, src []byte)
	narrow           [numTypes]func(dst []byte, src []float32)
	multiply, divide [numTypes]func(v []byte, by float64)
}

// current is the level of this process: the best one of this machine until Level has been called.
var current = newLevel(levels()[len(levels())-1])

// setLevel makes current what the environment asks for.
var setLevel = sync.OnceValue(func() error {
	name, err := choose(os.Getenv("GORUN_KERNELS"), levels())
	if name != current.name {
		current = newLevel(name)
	}
	return err
})

// Level returns the name of the level in use. The error says that this machine does not have the one that GORUN_KERNELS
// asks for. Its first call looks at that, before any other function of this package is called.
func Level() (string, error) {
	err := setLevel()
	return current.name, err
}

// choose returns the wanted one of levels, or else the last one.
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
