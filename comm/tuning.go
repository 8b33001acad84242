package comm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// By which algorithm a collective goes must be the same on every rank. It depends on the call, which is, and on the tuning that
// users give: that of rank 0, of which the others hear when ranks meet.

// parseTuning reads rules for all that ranks choose.
func parseTuning(rules string) (choice.Tuning, error) {
	return choice.Parse(rules, plan.Ways, shm.Ways)
}

// agreed is the tuning of first, which is rank 0. This rank may have been given another one, which does not count.
func (c *config) agreed(me, first rankInfo) (choice.Tuning, error) {
	if me.Tuning != first.Tuning && me.Tuning != "" {
		c.log.Warn("the tuning of rank 0 counts", "rank 0", first.Tuning, "this rank", me.Tuning)
	}
	rules, err := parseTuning(first.Tuning)
	if err != nil {
		return nil, fmt.Errorf("rank 0 on %s has another version of comm: %w", first.Host, err)
	}
	return rules, nil
}
