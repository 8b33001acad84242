package endpoint

import "github.com/gorun/gorun/comm/internal/call"

// awaitTag is the tag of no message.
const awaitTag = -3

// Await starts waiting for what rank src will do in collective seq and no message tells; over says whether it has happened,
// at any time. Whoever finds out ends the wait by Withdraw. If src dies, or closes the group, the wait ends like a receive.
func (l *Lane) Await(src int, seq uint64, call call.Call, over func() bool) *Op {
	l.ep.mu.Lock()
	l.takeOver()
	_ = l.compareAll() // the wait ends with it
	l.ep.mu.Unlock()
	op := newOp(src, awaitTag, call)
	op.seq, op.over = seq, over
	return l.recv(op)
}

// isOver ends op if what it awaits has happened, and says so: a rank may well be gone after it has done its part. The mutex
// is held.
func (op *Op) isOver() bool {
	if op.over == nil || !op.over() {
		return false
	}
	op.lane.detach(op)
	op.finish(nil)
	return true
}
