package pipeline

import "github.com/gorun/gorun/comm/internal/plan"

// This file says what a pipeline may do ahead of the order in which steps take effect.

// ahead moves c to the next step with a peer, and returns it. It returns nil if that step is too far ahead, or comes after a copy that
// has not been done.
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

// mayReceive reports whether the receive of the next chunk may be posted: there is memory for it, and what is in its place is not needed.
func (pl *Pipeline) mayReceive() bool {
	s := pl.ahead(&pl.in, comesFrom)
	if s == nil {
		return false
	}
	if s.Merge != plan.Replace {
		return pl.waiting < mostScratch
	}
	at := pl.in
	r := at.take(s.Recv, pl.chunk)
	if pl.merges(r, pl.in.step) {
		return false
	}
	if !pl.inPlace {
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

// maySend reports whether the next chunk may be sent: its bytes are final. An empty message says that the steps before it have been
// done, so it is never sent early.
func (pl *Pipeline) maySend() bool {
	s := pl.ahead(&pl.out, goesTo)
	if s == nil || s.Send.Len() == 0 || pl.sentAhead >= pl.mostAhead || !pl.isEager(s) {
		return false
	}
	at := pl.out
	return !pl.inPlace || !pl.merges(at.take(s.Send, pl.chunk), pl.out.step)
}

// merges reports whether steps before step will still change something of r.
func (pl *Pipeline) merges(r plan.Range, step int) bool {
	for at := pl.done; at.step < step; at = (cursor{step: at.step + 1}) {
		if s := &pl.task.Plan[at.step]; s.From != plan.None && at.rest(s.Recv).Overlaps(r) {
			return true
		}
	}
	return false
}
