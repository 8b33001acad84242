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

// nodesNamed returns "node 2" or "nodes 0, 1 and 2".
func nodesNamed(nodes []int) string {
	numbers := strings.Fields(strings.Trim(fmt.Sprint(nodes), "[]"))
	last := len(numbers) - 1
	if last == 0 {
		return "node " + numbers[0]
	}
	return "nodes " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}
