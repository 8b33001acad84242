package pipeline

import "github.com/gorun/gorun/comm/internal/plan"

// What a pipeline may do ahead of the order in which steps take effect.

// ahead moves c to the next step that it concerns, and returns that unless it is too far ahead, or behind a copy.
func (pl *Pipeline) ahead(c *cursor, peer func(*plan.Step) int) *plan.Step {
	p := pl.task.Plan
	for ; c.step < len(p) && c.step <= pl.done.step+mostSteps; *c = (cursor{step: c.step + 1}) {
		s := &p[c.step]
		if pl.isCopy(s) && c.step >= pl.done.step {
			return nil
		}
		if peer(s) != plan.None && !pl.isCopy(s) {
			return s
		}
	}
	return nil
}

func goesTo(s *plan.Step) int    { return s.To }
func comesFrom(s *plan.Step) int { return s.From }

// mayReceive reports whether there is a piece to be awaited next for which there is room.
func (pl *Pipeline) mayReceive() bool {
	s := pl.ahead(&pl.in, comesFrom)
	if s == nil {
		return false
	}
	if s.Merge != plan.Replace {
		return pl.waiting < mostScratch
	}
	at := pl.in
	r := at.take(s.Recv, pl.piece)
	if pl.merges(r, pl.in.step) {
		return false
	}
	if !pl.whole {
		return true
	}
	at = pl.out
	for at.step <= pl.in.step {
		if s := &pl.task.Plan[at.step]; s.To != plan.None && at.rest(s.Send).Overlaps(r) {
			return false
		}
		at = cursor{step: at.step + 1}
	}
	return !pl.sent.has(r)
}

// maySend reports whether there is a piece to be sent next that is there. A message of nothing says that the steps before have
// been taken.
func (pl *Pipeline) maySend() bool {
	s := pl.ahead(&pl.out, goesTo)
	if s == nil || s.Send.Len() == 0 || pl.lead >= pl.most || !pl.travels(s) {
		return false
	}
	at := pl.out
	return !pl.whole || !pl.merges(at.take(s.Send, pl.piece), pl.out.step)
}

// merges reports whether something of r is still to be merged by steps before step.
func (pl *Pipeline) merges(r plan.Range, step int) bool {
	for at := pl.done; at.step < step; at = (cursor{step: at.step + 1}) {
		if s := &pl.task.Plan[at.step]; s.From != plan.None && at.rest(s.Recv).Overlaps(r) {
			return true
		}
	}
	return false
}
