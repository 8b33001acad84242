package elastic

import (
	"context"
	"errors"
	"sync"

	"github.com/gorun/gorun/comm"
)

// transfer copies a commit of the holders to the receivers, which have the same layout. Several holders send parts of the large slices at the
// same time if there is much to send, each to all receivers. With each piece of the large slices that has come or gone, transfer calls onPiece,
// from several goroutines, unless that is nil.
func transfer(ctx context.Context, world *comm.Group, a agreement, c snapshot, onPiece func(piece)) error {
	if len(a.receivers) == 0 {
		return nil
	}
	total, lengths := 0, make([]int, len(c.large))
	for i, b := range c.large {
		lengths[i] = len(b)
		total += len(b)
	}
	sources := a.sources(total)
	groups := make([]*comm.Group, len(sources))
	for i, source := range sources {
		var err error
		if groups[i], err = comm.NewGroup(ctx, world, append([]int{source}, a.receivers...)); err != nil {
			return err
		}
	}
	defer func() {
		for _, g := range groups {
			_ = g.Close() // its calls have returned their errors
		}
	}()
	var (
		work sync.WaitGroup
		errs = make([]error, len(sources))
	)
	for i, pieces := range split(lengths, len(sources)) {
		if g := groups[i]; g != nil {
			work.Go(func() {
				if i == 0 { // one sends what has another length on each rank, if the commits differ
					errs[i] = comm.Broadcast(ctx, g, c.packed, 0)
				}
				if errs[i] == nil {
					errs[i] = broadcast(ctx, g, c.large, inChunks(pieces), onPiece)
				}
			})
		}
	}
	work.Wait()
	return errors.Join(errs...)
}

// broadcast copies pieces of buffers of rank 0 of g to its other ranks. The next one is under way while onPiece is called.
func broadcast(ctx context.Context, g *comm.Group, buffers [][]byte, pieces []piece, onPiece func(piece)) error {
	var before *comm.Work
	for i := range len(pieces) + 1 {
		var next *comm.Work
		if i < len(pieces) {
			p := pieces[i]
			next = comm.IBroadcast(g, buffers[p.buffer][p.from:p.to], 0)
		}
		if i > 0 {
			if err := before.Wait(ctx); err != nil {
				if next != nil {
					_ = next.Wait(ctx) // it fails as well: its group has
				}
				return err
			}
			if onPiece != nil {
				onPiece(pieces[i-1])
			}
		}
		before = next
	}
	return comm.Barrier(ctx, g) // before one closes it
}
