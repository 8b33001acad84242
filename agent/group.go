package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/death"
)

// A group is a failure, and the ranks of the workers that failed in the same way, in order.
type group struct {
	death.Death
	same []int
}

// grouped returns the failures of this node, in order, without those that look the same as one before. A worker that failed by itself
// may look the same as the root cause, but a worker that gorun stopped does not.
func (e *WorkerError) grouped() (root group, others []group) {
	groups := []group{{Death: e.Root}}
	index := make(map[string]int)
	if e.Elsewhere == nil {
		index[e.look(e.Root)] = 0
	}
	for _, x := range slices.Concat(e.Others, e.Stopped) {
		look := e.look(x)
		i, known := index[look]
		if !known {
			index[look] = len(groups)
			groups = append(groups, group{Death: x})
			continue
		}
		groups[i].same = append(groups[i].same, x.Rank)
	}
	for i := range groups {
		slices.Sort(groups[i].same)
	}
	return groups[0], groups[1:]
}

// look returns what a failure looks like, without what always differs: time, process number, and the rank with which torch begins the
// lines of a traceback.
func (e *WorkerError) look(x death.Death) string {
	x.Pid = 0
	r := e.ErrorFiles[x.Rank]
	text := append([]string{fmt.Sprint(x.Stopped), exitText(x), e.note(x, r)}, e.explanation(x, rootLines)...)
	return strings.ReplaceAll(strings.Join(text, "\n"), fmt.Sprintf("[rank%d]:", x.Rank), "[rank]:")
}
