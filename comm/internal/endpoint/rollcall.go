package endpoint

import (
	"context"
	"slices"
	"time"
)

// A roll is a list of the members that have not said yet whether they are in a collective.
type roll struct {
	seq    uint64
	unsure []int
	absent []int // they have said that they are not
	done   chan struct{}
}

// note records what rank says.
func (r *roll) note(rank int, here bool) {
	i := slices.Index(r.unsure, rank)
	if i < 0 {
		return
	}
	r.unsure = slices.Delete(r.unsure, i, i+1)
	if !here {
		r.absent = append(r.absent, rank)
	}
	if len(r.unsure) == 0 {
		close(r.done)
	}
}

// RollCall asks all members whether they have begun collective seq, in which this rank is. If some have not, or do not
// answer until ctx ends, and the collective has not ended meanwhile, it fails the lane with a failure that names them.
func (l *Lane) RollCall(ctx context.Context, seq uint64) {
	e := l.ep
	r := &roll{seq: seq, done: make(chan struct{})}
	e.mu.Lock()
	for _, rank := range l.members {
		if rank != e.rank {
			r.unsure = append(r.unsure, rank)
		}
	}
	l.roll = r
	for _, rank := range l.members {
		if rank != e.rank {
			l.ask(rank, seq)
		}
	}
	e.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.roll = nil
	missing := append(r.absent, r.unsure...)
	slices.Sort(missing)
	if c := l.collectives.at(seq); len(missing) > 0 && c != nil && c.Ended.IsZero() {
		l.fail(&Failure{
			Kind: Absent, Rank: missing[0], Text: e.name(c.Call, seq), Missing: missing,
			Late: true, After: time.Since(c.Began), Err: ErrTimeout,
		}, -1)
	}
}
