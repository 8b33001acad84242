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

// rootCauses are what each agent says.
type rootCauses map[string][]rootCause

// ofRestarts returns why each restart was used. It fails if two agents do not say the same of a restart.
func (r rootCauses) ofRestarts() (map[int]rootCause, error) {
	known := make(map[int]rootCause)
	for name, list := range r {
		for _, c := range list {
			if other, ok := known[c.restart]; ok && other != c {
				return nil, fmt.Errorf("%s says that restart %d is because of %s, and another node, because of %s", name, c.restart, c.text, other.text)
			}
			known[c.restart] = c
		}
	}
	return known, nil
}

// checkRootCauses returns an error unless there is one root cause for each restart, which all agents name. If the fault has ended workers, it
// must be one of these, unless they run the user's own program, which may end for another reason.
func (o *observer) checkRootCauses(restarts int, program bool) error {
	known, err := o.causes.ofRestarts()
	if err != nil {
		return err
	}
	for n := 1; n <= restarts; n++ {
		c, ok := known[n]
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
