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
	waits   map[int]Wait  // of those that do not come because they wait elsewhere; For is who is at the end of that
	done    chan struct{} // closed when nobody is missing
}

// answered takes in what rank, which has not come, says of itself.
func (r *roll) answered(rank int, says *report) {
	delete(r.waits, rank)
	if len(says.Chain) > 0 && says.Blame != nil && says.Blame.Rank >= 0 && says.Blame.Rank != rank {
		r.waits[rank] = Wait{Rank: rank, For: says.Blame.Rank, In: says.Chain[0].In}
	}
}

// failure is that of a collective to which ranks have not come. At fault is one that does not wait itself, if there is one.
func (r *roll) failure(what string, after time.Duration) *Failure {
	slices.Sort(r.missing)
	f := &Failure{
		Kind: Absent, Rank: r.missing[0], Text: what, Missing: r.missing, Late: true, After: after, Err: ErrTimeout,
	}
	for _, rank := range slices.Backward(r.missing) {
		if w, waits := r.waits[rank]; waits {
			f.Waits = append(f.Waits, w)
		} else {
			f.Rank = rank
		}
	}
	slices.Reverse(f.Waits)
	return f
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
	r := &roll{seq: seq, waits: map[int]Wait{}, done: make(chan struct{})}
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
	if c := l.collectives.at(seq); errors.Is(ctx.Err(), context.DeadlineExceeded) && len(r.missing) > 0 && c != nil && l.waitsIn(seq) {
		l.fail(r.failure(e.name(c.Call, seq), time.Since(c.Began)), -1)
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
