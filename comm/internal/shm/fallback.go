package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// A rank may find out only when it reads that it cannot: the buffer is memory of a device, or the rank may no longer read its neighbour's
// memory because one of them has changed its user. Then it refuses the exports of the operation. The ranks that export wait until all
// have read or refused. For those that have refused, they put their buffers into slots, as if they had exported nothing.
//
// The exporters take turns, in order of rank, and so do the refusing ranks in the turn of each exporter. All go through the same turns, so
// no two ranks wait for each other. The slots are those of the operation, which the exporters have not used.

// refuse refuses the exports of this operation, and all later ones. The others see it when they see this rank's next step.
func (t *Team) refuse() {
	t.refused, t.canRead = t.op, false
	t.say(preferences(t.op << refusedShift))
}

// hasRefused reports whether r, which has done the last step of the operation, has refused.
func (t *Team) hasRefused(r int) bool {
	return cpu.Load(&t.ranks[r].preferences)>>refusedShift == t.op<<refusedShift>>refusedShift
}

// finishPrivate ends an operation in which ranks may have exported private memory. last is the last step of those that read. exported says whether this
// rank has exported its own, of which rank r takes part(r). What this rank takes from r belongs in into(r).
func (t *Team) finishPrivate(exported bool, last int, part, into func(r int) []byte) (err error) {
	defer t.forgetBuffers()
	if err = t.awaitAll(exported, last); err != nil || t.refused != t.op && !exported {
		return err
	}
	end := t.first
	t.first = t.began
	for e := 0; e < t.n && err == nil; e++ {
		switch {
		case e != t.me && t.refused == t.op && t.attached[e].id == t.op && t.attached[e].private:
			err = t.readServed(e, last, into(e))
		case e == t.me && exported:
			err = t.serveAll(last, part)
		}
	}
	t.first = end
	return err
}

// serveAll puts what ranks that have refused take from this one into slots, for one after the other.
func (t *Team) serveAll(last int, part func(r int) []byte) error {
	for r := range t.n {
		if r == t.me || !t.hasRefused(r) {
			continue
		}
		data := part(r)
		count := t.servings(len(data))
		if err := t.reclaimAll(); err != nil { // each time the slots are filled from the first one on
			return err
		}
		for i := range count {
			step := t.servingStep(last, t.me, 0, count, i)
			slot, err := t.reserveSlot(i, step, r)
			if err != nil {
				return err
			}
			t.moves.Add(1)
			t.put(slot, cut(data, i, len(slot)))
			t.done(t.servingStep(last, t.me, r, count, i))
		}
	}
	return nil
}

// readServed reads from e's slots what this rank has refused to read elsewhere.
func (t *Team) readServed(e, last int, dst []byte) error {
	count := t.servings(len(dst))
	for i := range count {
		if err := t.wait(e, t.servingStep(last, e, t.me, count, i)); err != nil {
			return err
		}
		t.moves.Add(1)
		slot := t.slotOf(e, i)
		t.get(cut(dst, i, len(slot)), slot, 0)
		t.done(t.servingStep(last, e, 0, count, i))
	}
	return nil
}

// servings is how many slots n bytes take.
func (t *Team) servings(n int) int { return (n + int(t.size) - 1) / int(t.size) }

// servingStep is the step, in the turn of exporter e, of slot i of count for rank r. Ranks that read do the steps for rank 0, whichever they
// are.
func (t *Team) servingStep(last, e, r, count, i int) int {
	return last + 1 + (e*t.n+r)*count + i + 1
}

// hasStepsToServe reports whether an operation has enough steps for a fallback in which every rank reads n bytes from every other one. If the
// bytes take more than one slot, each slot has at least half of the largest size.
func (t *Team) hasStepsToServe(n int) bool {
	return (t.n*t.n+1)*(2*n/t.slot+1) < 1<<(stepBits-1)
}

// forgetBuffers drops the references to the program's buffers.
func (t *Team) forgetBuffers() {
	t.exported = nil
	for r := range t.attached {
		if t.attached[r].private {
			t.attached[r] = attachment{}
		}
	}
}
