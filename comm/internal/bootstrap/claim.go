package bootstrap

import (
	"context"
	"fmt"
	"sync"

	"github.com/gorun/gorun/comm/store"
)

// claims are the ranks that this process has claimed at stores, by the mark that the store has of each. A process that has claimed one
// may do so again when it has closed its world: Init after Close is the next world of the same ranks.
type claims struct {
	mu    sync.Mutex
	taken map[string]bool // whether the world is open or being joined; false when it has been closed
}

var ownClaims = claims{taken: map[string]bool{}}

// claim claims p's rank at s and returns how many times this process has, which is the same number on every rank, as all come
// to every world. leave gives the rank up for the next time.
func (o *claims) claim(ctx context.Context, s store.Store, p place) (turn int64, leave func(), err error) {
	mine := fmt.Sprintf("%016x", randomID())
	mark, err := s.CompareAndSwap(ctx, fmt.Sprintf("seat/%d", p.rank), nil, []byte(mine))
	if err != nil {
		return 0, nil, err
	}
	rank := string(mark)
	if !o.take(rank, rank == mine) {
		return 0, nil, refusef("rank %d has joined already at %s: two processes have RANK=%d, or this one has not closed its world",
			p.rank, p.meet, p.rank)
	}
	leave = sync.OnceFunc(func() { o.leave(rank) })
	if turn, err = s.Add(ctx, fmt.Sprintf("joined/%d", p.rank), 1); err != nil {
		leave()
	}
	return turn, leave, err
}

// take takes a rank that is new, or has been left, and reports whether it did.
func (o *claims) take(rank string, isNew bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken, known := o.taken[rank]
	if !isNew && (taken || !known) {
		return false
	}
	o.taken[rank] = true
	return true
}

func (o *claims) leave(rank string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[rank] = false
}
