package drill

import (
	"fmt"
	"slices"
)

// A rootCause is why the job has used a restart, as an agent says.
type rootCause struct {
	restart, rank int
	text          string
}

// explain records why the job has used a restart, as an agent says. All must say the same.
func (o *observer) explain(agent string, c rootCause) {
	if other, ok := o.causes[c.restart]; ok && other != c {
		o.fail(fmt.Errorf("%s says that restart %d is because of %s, and another node, because of %s", agent, c.restart, c.text, other.text))
	}
	o.causes[c.restart] = c
}

// checkRootCauses returns an error unless a root cause is known for each restart. If the fault has ended workers, it must be one of these, unless
// they run the user's own program, which may end for another reason.
func (o *observer) checkRootCauses(restarts int, program bool) error {
	for n := 1; n <= restarts; n++ {
		c, ok := o.causes[n]
		if !ok {
			return fmt.Errorf("no node says why restart %d was used", n)
		}
		hit := func(k *worker) bool { return k.Rank == c.rank && o.fault.hits(k) }
		if o.fault.exitCode != 0 && !program && !slices.ContainsFunc(o.in(o.fault.before), hit) {
			return fmt.Errorf("restart %d is said to be because of %s, which the fault did not hit", n, c.text)
		}
	}
	return nil
}
