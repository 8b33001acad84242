package bootstrap

import (
	"context"
	"fmt"
	"sync"

	"github.com/gorun/gorun/comm/store"
)

// claims has the ranks that this process has claimed in stores, by the mark that the store has of each. A process that
// has claimed a rank may claim it again when it has closed its world: Init after Close joins the next world of the same
// ranks.
type claims struct {
	mu    sync.Mutex
	taken map[string]bool // by mark: true while the world is open or being joined
}

var ownClaims = claims{taken: map[string]bool{}}

// claim claims p's rank in s. It returns how many worlds this process has joined as that rank, which is the same number
// on all ranks, because all of them join every world. leave releases the rank for the next world.
func (o *claims) claim(ctx context.Context, s store.Store, p place) (generation int64, leave func(), err error) {
	mine := fmt.Sprintf("%016x", randomID())
	mark, err := s.CompareAndSwap(ctx, fmt.Sprintf("seat/%d", p.rank), nil, []byte(mine))
	if err != nil {
		return 0, nil, p.notAnswered(err)
	}
	rank := string(mark)
	switch taken, own := o.take(rank, rank == mine); {
	case taken:
	case own:
		return 0, nil, refusef("it was called twice: as rank %d at %s, use the world that it has returned, or close that first", p.rank, p.meet)
	default:
		return 0, nil, refusef("rank %d has joined already at %s: two processes have RANK=%d", p.rank, p.meet, p.rank)
	}
	leave = sync.OnceFunc(func() { o.leave(rank) })
	if generation, err = s.Add(ctx, fmt.Sprintf("joined/%d", p.rank), 1); err != nil {
		leave()
	}
	return generation, leave, p.notAnswered(err)
}

// take marks a rank as taken, if it is new or has been released, and reports whether it has. own reports whether this process
// had it before.
func (o *claims) take(rank string, isNew bool) (taken, own bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	isOpen, own := o.taken[rank]
	if !isNew && (isOpen || !own) {
		return false, own
	}
	o.taken[rank] = true
	return true, own
}

func (o *claims) leave(rank string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[rank] = false
}
