package drill

import (
	"context"
	"fmt"
	"strings"
)

// A step is one thing that a scenario does, waits for or checks.
type step struct {
	what string // for people
	do   func(context.Context, *drill) error
}

// act returns a step that does not wait.
func act(what string, do func(*drill) error) step {
	return step{what, func(_ context.Context, d *drill) error { return do(d) }}
}

// until returns a step that waits for something.
func until(what string, is func(*drill) bool) step {
	return step{what, func(ctx context.Context, d *drill) error { return d.await(ctx, func() bool { return is(d) }) }}
}

// each calls do for each number, until that fails.
func each(numbers []int, do func(int) error) error {
	for _, n := range numbers {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// named returns the same step in other words.
func (s step) named(what string) step { return step{what, s.do} }

// numbered returns "node 2" or "nodes 0, 1 and 2".
func numbered(what string, list []int) string {
	numbers := strings.Fields(strings.Trim(fmt.Sprint(list), "[]"))
	last := len(numbers) - 1
	if last == 0 {
		return what + " " + numbers[0]
	}
	return what + "s " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}

// hostNamed returns "node 2" or "member 0 of etcd".
func hostNamed(host int) string {
	if host < 0 {
		return membersNamed([]int{etcdHost(host)})
	}
	return numbered("node", []int{host})
}

func membersNamed(members []int) string { return numbered("member", members) + " of etcd" }
