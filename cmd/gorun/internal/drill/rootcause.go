package drill

import (
	"context"
	"fmt"
	"slices"
)

// A rootCause is why the job has used a restart, as an agent says.
type rootCause struct {
	restart, rank int
	text          string
}

// checkRootCauses returns an error unless the agents say the same of each of the job's restarts, and, if the fault has ended workers, name
// one of them.
func (w *world) checkRootCauses(restarts int) error {
	known := make(map[int]rootCause)
	for name, list := range w.causes {
		for _, c := range list {
			if other, ok := known[c.restart]; ok && other != c {
				return fmt.Errorf("%s says that restart %d is because of %s, and another node, because of %s", name, c.restart, c.text, other.text)
			}
			known[c.restart] = c
		}
	}
	for n := 1; n <= restarts; n++ {
		c, ok := known[n]
		if !ok {
			return fmt.Errorf("no node says why restart %d was used", n)
		}
		hit := func(k *worker) bool { return k.Rank == c.rank && w.victim(k) }
		if w.exitCode != 0 && !w.program && !slices.ContainsFunc(w.in(w.before), hit) {
			return fmt.Errorf("restart %d is said to be because of %s, which the fault did not hit", n, c.text)
		}
	}
	return nil
}

// oneRootCause checks what agents have logged.
func oneRootCause() step {
	return step{"all nodes name the same root cause", func(_ context.Context, s *testbed) error {
		return s.world.checkRootCauses(s.world.restarts())
	}}
}
