package drill

import (
	"fmt"
	"slices"
)

// restarts checks that at least and at most so many restarts were used.
func restarts(least, most int) step {
	what := fmt.Sprintf("restarts used: %d", least)
	if most > least {
		what += fmt.Sprintf(" to %d", most)
	}
	return act(what, func(d *drill) error {
		if used := d.restarts(); used < least || used > most {
			return fmt.Errorf("%d were used", used)
		}
		return nil
	})
}

// oneRound checks that there was only one new round: no other node was lost, not even for a moment.
func oneRound() step {
	return act("there was exactly one new round", func(d *drill) error {
		if n := d.newest() - d.fault.before; n != 1 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
}

// sameRanks checks that the workers of a node have the ranks that those of another had before the fault.
func sameRanks(old, now int) step {
	return act(fmt.Sprintf("node %d has the ranks that node %d had", now, old), func(d *drill) error {
		if a, b := d.ranksOf(d.fault.before, old), d.ranksOf(d.newest(), now); !slices.Equal(a, b) {
			return fmt.Errorf("it has ranks %v, want %v", b, a)
		}
		return nil
	})
}

// oldWorkers checks that the workers that a node had before the fault are still there: nobody can have ended them.
func oldWorkers(node int) step {
	return act(fmt.Sprintf("node %d still has its old workers", node), func(d *drill) error {
		if n := len(d.live(node)); n != d.nproc {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
}

// livedOn checks that the workers that a node had before the fault are in the newest round, if workers live on.
func livedOn(node int) step {
	return act(fmt.Sprintf("the workers of node %d have lived on", node), func(d *drill) error {
		if !d.replace || d.options.Program != nil {
			return nil
		}
		for _, k := range d.in(d.fault.before) {
			if k.Node == node && k.last().Round != d.newest() {
				return fmt.Errorf("%v has not", k)
			}
		}
		return nil
	})
}

// oneRootCause checks what agents have logged.
func oneRootCause() step {
	return act("all nodes name the same root cause", func(d *drill) error {
		return d.checkRootCauses(d.restarts(), d.options.Program != nil)
	})
}
