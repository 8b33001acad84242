package comm

import (
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/plan"
)

// A prediction returns the time of the operation by the ways that c chooses, if it can be predicted.
type prediction func(c plan.Choices) (time.Duration, bool)

// of returns a column of the table of ways: the time with three digits, or a dash if it is not known.
func (predict prediction) of(c plan.Choices) string {
	if predict == nil {
		return ""
	}
	d, known := predict(c)
	text, us := "-", float64(d.Nanoseconds())/1e3
	switch {
	case !known:
	case us < 9.995:
		text = fmt.Sprintf("%.2f us", us)
	case us < 99.95:
		text = fmt.Sprintf("%.1f us", us)
	default:
		text = fmt.Sprintf("%.0f us", us)
	}
	return fmt.Sprintf("  %9s", text)
}

// byMessages prints the ways of ranks that exchange messages in a system.
func (e *explanation) byMessages(title string, ranks int, system func() cost.System) {
	if e.has(pointToPoint) {
		e.table(title, pointToPoint, ranks, e.bytes)
		return
	}
	s := system()
	e.ways(title, e.plans, e.op, ranks, e.bytes, func(c plan.Choices) (time.Duration, bool) {
		if !plan.Fits(e.op, c.Pick(e.op, ranks, e.bytes), ranks, e.bytes) {
			return 0, false
		}
		plans, inPlace := cost.Plans(c, e.op, ranks, e.bytes)
		return s.Time(plans, inPlace)
	})
	if s.HasNetwork() {
		e.predictedWithNetwork(s)
	}
	if s.HasMachine() {
		e.line("Predicted with machine=%v.", s.Machine)
	}
}

// onRails predicts the stage of ranks on several machines in which rails exchange messages. It takes all machines to have as many ranks
// as the smallest one.
func (e *explanation) onRails(at plan.Nodes, system func(ranks []int) cost.System, between map[int]plan.Choices) prediction {
	return func(c plan.Choices) (time.Duration, bool) {
		rails := c.Rails(at, e.bytes)
		c.Model, c.Chain = between[rails].Model, between[rails].Chain
		plans, inPlace := cost.Plans(c, e.op, len(at.Members), (e.bytes+rails-1)/rails)
		s := system(at.OnRails(rails))
		return s.Time(cost.OnRails(plans, rails), inPlace)
	}
}

// predictedWithNetwork says what messages cost between the machines of s, whose ranks are those of the group.
func (e *explanation) predictedWithNetwork(s cost.System) {
	text, slower := fmt.Sprintf("Predicted with network=%v", s.Network), 0
	for m, gap := range s.Gaps {
		if gap == s.Network.Gap {
			continue
		}
		if slower++; slower <= mostSlowMachines {
			text += fmt.Sprintf("; rate:%s for the machine of rank %d", cost.Rate(gap), slices.Index(s.Machines, m))
		}
	}
	if more := slower - mostSlowMachines; more > 0 {
		text += fmt.Sprintf("; %d more machines are slower", more)
	}
	e.line("%s.", text)
}

// mostSlowMachines is the most machines whose rates are printed.
const mostSlowMachines = 8
