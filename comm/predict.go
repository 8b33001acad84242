package comm

import (
	"fmt"
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
	e.ways(title, e.plans.Chooser, e.op, ranks, e.bytes, func(c plan.Choices) (time.Duration, bool) {
		if !plan.Fits(e.op, c.Pick(e.op, ranks, e.bytes), ranks, e.bytes) {
			return 0, false
		}
		plans, inPlace := cost.Plans(c, e.op, ranks, e.bytes)
		return s.Time(plans, inPlace)
	})
	if s.HasNetwork() {
		e.predictedWith("network", s.Network)
	}
	if s.HasMachine() {
		e.predictedWith("machine", s.Machine)
	}
}

// onRails predicts the stage of ranks on several machines in which rails exchange messages. It takes all machines to have as many ranks
// as the smallest one.
func (e *explanation) onRails(at plan.Nodes, system func(ranks []int) cost.System, between map[int]plan.Choices) prediction {
	return func(c plan.Choices) (time.Duration, bool) {
		rails := c.Rails(at, e.bytes)
		c.Model = between[rails].Model
		plans, inPlace := cost.Plans(c, e.op, len(at.Members), (e.bytes+rails-1)/rails)
		s := system(at.OnRails(rails))
		return s.Time(cost.OnRails(plans, rails), inPlace)
	}
}

// predictedWith says what messages cost on a link.
func (e *explanation) predictedWith(name string, l cost.Link) {
	e.line("Predicted with %s=%v.", name, l)
}
