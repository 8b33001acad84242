package core

import (
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// ParseTuning reads rules for all that ranks choose. Every rank has to use the same algorithm for a call: its choice depends on the
// call, which is the same, and on the tuning of rank 0, of which the others hear when they join.
func ParseTuning(rules string) (choice.Tuning, error) {
	return choice.Parse(rules, plan.Ways, shm.Ways)
}
