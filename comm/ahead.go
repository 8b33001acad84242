package comm

import "github.com/gorun/gorun/comm/internal/plan"

// What a flow may do ahead of the order in which steps take effect.

// ahead moves c to the next step that it concerns, and returns that unless it is too far ahead, or behind a copy.
func (f *flow) ahead(c *cursor, peer func(*plan.Step) int) *plan.Step {
	p := f.t.plan
	for ; c.step < len(p) && c.step <= f.done.step+mostSteps; *c = (cursor{step: c.step + 1}) {
		s := &p[c.step]
		if f.isCopy(s) && c.step >= f.done.step {
			return nil
		}
		if peer(s) != plan.None && !f.isCopy(s) {
			return s
		}
	}
	return nil
}

func goesTo(s *plan.Step) int    { return s.To }
func comesFrom(s *plan.Step) int { return s.From }

// mayReceive says whether there is a piece to be awaited next for which there is room.
func (f *flow) mayReceive() bool {
	s := f.ahead(&f.in, comesFrom)
	if s == nil {
		return false
	}
	if s.Merge != plan.Replace {
		return f.scratch < mostScratch
	}
	at := f.in
	r := at.take(s.Recv, f.piece)
	if f.merges(r, f.in.step) {
		return false
	}
	if !f.whole {
		return true
	}
	at = f.out
	for at.step <= f.in.step {
		if s := &f.t.plan[at.step]; s.To != plan.None && at.rest(s.Send).Overlaps(r) {
			return false
		}
		at = cursor{step: at.step + 1}
	}
	return !f.sent.has(r)
}

// maySend says whether there is a piece to be sent next that is there. A message of nothing says that the steps before have
// been taken.
func (f *flow) maySend() bool {
	s := f.ahead(&f.out, goesTo)
	if s == nil || s.Send.Len() == 0 || f.lead >= f.most || !f.travels(s) {
		return false
	}
	at := f.out
	return !f.whole || !f.merges(at.take(s.Send, f.piece), f.out.step)
}

// merges says whether something of r is still to be merged by steps before step.
func (f *flow) merges(r plan.Range, step int) bool {
	for at := f.done; at.step < step; at = (cursor{step: at.step + 1}) {
		if s := &f.t.plan[at.step]; s.From != plan.None && at.rest(s.Recv).Overlaps(r) {
			return true
		}
	}
	return false
}
