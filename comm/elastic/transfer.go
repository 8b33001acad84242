package elastic

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// transfer copies a commit of the holders to the receivers, which have the same layout. Several holders send parts of the large slices at the
// same time if there is much to send, each to all receivers. On a receiver, the large slices go to all of copies.
func transfer(ctx context.Context, world *comm.Group, a agreement, c snapshot, copies [][][]byte) error {
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
				if i == 0 { // only one source sends the packed part: its length may differ between holders whose commits differ
					errs[i] = comm.Broadcast(ctx, g, c.packed, 0)
				}
				if errs[i] == nil && g.Rank() == 0 {
					errs[i] = send(ctx, g, c.large, inChunks(pieces))
				} else if errs[i] == nil {
					errs[i] = receive(ctx, g, copies, inChunks(pieces))
				}
				if errs[i] == nil {
					errs[i] = comm.Barrier(ctx, g) // no rank closes g before all are done
				}
			})
		}
	}
	work.Wait()
	return errors.Join(errs...)
}

// send sends pieces of large slices to the other ranks of g.
func send(ctx context.Context, g *comm.Group, large [][]byte, pieces []piece) error {
	for _, p := range pieces {
		if err := comm.Broadcast(ctx, g, large[p.buffer][p.from:p.to], 0); err != nil {
			return err
		}
	}
	return nil
}

// receive receives pieces of large slices from rank 0 of g, and writes each to all copies. It receives them in buffers that stay in the cache:
// to write from there past the cache costs much less than to copy from one large slice to another. If this rank has a processor to spare,
// another goroutine writes. With only two processors, for sender and receiver, a transfer took half as long again that way.
func receive(ctx context.Context, g *comm.Group, copies [][][]byte, pieces []piece) error {
	write := func(p piece, received []byte) {
		for _, to := range copies {
			cpu.CopyNonTemporal(to[p.buffer][p.from:p.to], received)
		}
	}
	buffers := 1
	if runtime.GOMAXPROCS(0) >= leastSpare {
		var done func()
		write, done = inBackground(write)
		defer done()
		buffers = 3 // one to receive into, one that waits to be written from, and one that is being written from
	}
	memory := make([]byte, buffers*chunk)
	for i, p := range pieces {
		received := memory[i%buffers*chunk:][:p.to-p.from]
		if err := comm.Broadcast(ctx, g, received, 0); err != nil {
			return err
		}
		write(p, received)
	}
	return nil
}

// leastSpare is how many processors there are at least if a rank has one to spare for writing.
const leastSpare = 4

// inBackground returns a function that has write called in another goroutine, and a function that waits for all these calls. At most one
// call waits for its turn: the next one waits until that has begun.
func inBackground(write func(piece, []byte)) (later func(piece, []byte), done func()) {
	type arrival struct {
		piece
		received []byte
	}
	arrivals := make(chan arrival, 1)
	var writing sync.WaitGroup
	writing.Go(func() {
		for a := range arrivals {
			write(a.piece, a.received)
		}
	})
	return func(p piece, received []byte) { arrivals <- arrival{p, received} }, func() {
		close(arrivals)
		writing.Wait()
	}
}
