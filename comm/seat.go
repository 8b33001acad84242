package comm

import (
	"context"
	"fmt"
	"sync"
)

// seats are the places of ranks at stores, by the mark that the store has of each. A process that has one may take it again
// when it has closed its world: Init after Close is the next world of the same ranks.
type seats struct {
	mu    sync.Mutex
	taken map[string]bool // whether the world is open or being joined; false when it has been closed
}

var ownSeats = seats{taken: map[string]bool{}}

// sit takes p's seat at s and returns how many times this process has, which is the same number on every rank, as all come
// to every world. leave gives it up for the next time.
func (o *seats) sit(ctx context.Context, s Store, p place) (turn int64, leave func(), err error) {
	mine := fmt.Sprintf("%016x", randomID())
	mark, err := s.CompareAndSwap(ctx, fmt.Sprintf("seat/%d", p.rank), nil, []byte(mine))
	if err != nil {
		return 0, nil, err
	}
	seat := string(mark)
	if !o.take(seat, seat == mine) {
		return 0, nil, badArgument("Init", "rank %d has joined already at %s: two processes have RANK=%d, or this one has not closed its world",
			p.rank, p.meet, p.rank)
	}
	leave = sync.OnceFunc(func() { o.leave(seat) })
	if turn, err = s.Add(ctx, fmt.Sprintf("joined/%d", p.rank), 1); err != nil {
		leave()
	}
	return turn, leave, err
}

// take takes a seat that is new, or has been left, and says whether it did.
func (o *seats) take(seat string, isNew bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken, known := o.taken[seat]
	if !isNew && (taken || !known) {
		return false
	}
	o.taken[seat] = true
	return true
}

func (o *seats) leave(seat string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[seat] = false
}
