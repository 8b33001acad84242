// Package affinity binds this process to the processors that its agent has worked out for it. The agent does not bind it itself, since
// only ranks that wait for each other in memory gain by it: other programs lose where processors are shared with something else.
package affinity

import (
	"fmt"
	"strconv"
	"strings"
)

// mostCPUs is one more than the greatest number of a processor.
const mostCPUs = 1 << 16

// Variable is the environment variable by which the agent tells a worker its processors.
const Variable = "GORUN_CPUS"

// Bind binds the threads of this process to a share of the processors of its node. Both are lists as the kernel writes them, such as
// 0-3,8/0-15: first the share, then all. Threads that may not use just all of these have been bound by somebody else, and stay as they
// are. So does everything if share is empty. On systems other than Linux, Bind only checks share.
//
// The error says what is wrong with share, or names the system call that has failed.
func Bind(share string) error {
	own, all, err := split(share)
	if err != nil || own == nil {
		return err
	}
	return bind(own, all)
}

// Calls returns a function that binds only the thread of the goroutine that calls it, to share as Bind does, until that
// goroutine calls what the function has returned. It is nil if share is empty.
func Calls(share string) (enter func() (leave func()), err error) {
	own, all, err := split(share)
	if err != nil || own == nil {
		return nil, err
	}
	return calls(own, all), nil
}

// split returns the processors of a share, and all; none if it is empty.
func split(share string) (own, all []int, err error) {
	if share == "" {
		return nil, nil, nil
	}
	text, rest, _ := strings.Cut(share, "/")
	if own, err = parse(text); err == nil {
		all, err = parse(rest)
	}
	if err != nil {
		return nil, nil, &ShareError{fmt.Errorf("%s=%.60q: %w", Variable, share, err)}
	}
	return own, all, nil
}

// A ShareError says what is wrong with a share.
type ShareError struct{ err error }

func (e *ShareError) Error() string { return e.err.Error() }

// parse returns the numbers in a list. It has one at least.
func parse(list string) (cpus []int, err error) {
	for item := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(item, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 32)
		last, err2 := strconv.ParseUint(high, 10, 32)
		if err1 != nil || err2 != nil || last < first || last >= mostCPUs || len(cpus) > mostCPUs {
			return nil, fmt.Errorf("%.20q: want two lists of processors, such as 0-3,8/0-15", item)
		}
		for n := first; n <= last; n++ {
			cpus = append(cpus, int(n))
		}
	}
	return cpus, nil
}
