package endpoint

import (
	"context"
	"errors"
	"slices"
	"time"
)

// rollTag marks the questions of a roll call: who is asked need not call the roll itself.
const rollTag = 1

// A roll is a list of the members that are not known to be in a collective.
type roll struct {
	seq     uint64
	missing []int
	done    chan struct{} // closed when it is empty
}

// found takes rank off the list.
func (r *roll) found(rank int) {
	if i := slices.Index(r.missing, rank); i >= 0 {
		if r.missing = slices.Delete(r.missing, i, i+1); len(r.missing) == 0 {
			close(r.done)
		}
	}
}

// RollCall asks the other members whether they have begun collective seq, in which this rank is, and those that have not
// again every so often. If some have not by ctx's deadline, and this rank waits in the collective still, it fails the lane
// with a failure that names them. If another member has begun to call the roll already, it leaves that to it.
func (l *Lane) RollCall(ctx context.Context, seq uint64, every time.Duration) {
	e := l.ep
	if l.isRolled(seq) {
		return
	}
	r := &roll{seq: seq, done: make(chan struct{})}
	for _, rank := range l.members {
		if rank != e.rank {
			r.missing = append(r.missing, rank)
		}
	}
	again := time.NewTicker(every)
	defer again.Stop()
	for ctx.Err() == nil {
		e.mu.Lock()
		l.roll = r
		for _, rank := range r.missing {
			l.ask(rank, seq, rollTag)
		}
		e.mu.Unlock()
		select {
		case <-again.C:
		case <-ctx.Done():
		case <-r.done: // they are all there, and nobody need fail
			return
		case <-e.ctx.Done():
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(r.missing)
	if c := l.collectives.at(seq); errors.Is(ctx.Err(), context.DeadlineExceeded) && len(r.missing) > 0 && c != nil && l.waitsIn(seq) {
		l.fail(&Failure{
			Kind: Absent, Rank: r.missing[0], Text: e.name(c.Call, seq), Missing: r.missing,
			Late: true, After: time.Since(c.Began), Err: ErrTimeout,
		}, -1)
	}
}

func (l *Lane) isRolled(seq uint64) bool {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	return l.rolled == seq
}

// waitsIn says whether an operation of collective seq is under way. The mutex is held.
func (l *Lane) waitsIn(seq uint64) bool {
	for _, op := range l.ops {
		if op.seq == seq {
			return true
		}
	}
	return false
}
