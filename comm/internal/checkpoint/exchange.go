package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/gorun/gorun/comm"
)

// An exchange carries out moves: it sends parts of a commit from rank to rank. While it runs it does not touch Checkpoints, so it can go on beside
// the program.
type exchange struct {
	ctx    context.Context
	group  *comm.Group
	moves  []move // the same on all ranks; the tag of each is its index
	id     ID
	shared uint32              // checksum of the Trees of what is shared, which are the same on all ranks; that of the Bytes would take long
	sends  map[string]*version // what this rank sends, by name
	spares map[string]*memory  // for what it receives, by name

	ended    chan struct{}       // closed at the end of what start has begun; after that:
	received map[string]*version // what has arrived, by name
	err      error
}

// newExchange returns an exchange that has not begun. For what this rank will receive, it takes spare memory.
func (c *Checkpoints) newExchange(ctx context.Context, moves []move, id ID) *exchange {
	x := &exchange{ctx: ctx, group: c.group, moves: moves, id: id, sends: make(map[string]*version), spares: make(map[string]*memory)}
	if v := c.chain(Shared).find(id); v != nil {
		for _, e := range v.entries {
			x.shared = crc32.Update(x.shared, castagnoli, e.canonical())
		}
	}
	for _, m := range moves {
		chain := c.chain(m.name)
		if m.from == c.group.Rank() {
			x.sends[m.name] = chain.find(id)
		}
		if m.to == c.group.Rank() {
			x.spares[m.name], chain.spare = chain.spare, nil
		}
	}
	return x
}

// run sends and receives, all at once. It returns what has arrived, by name, also with an error.
func (x *exchange) run() (map[string]*version, error) {
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		got  = make(map[string]*version)
		errs []error
	)
	for tag, m := range x.moves {
		if x.group.Rank() != m.from && x.group.Rank() != m.to {
			continue
		}
		work.Go(func() {
			var v *version
			var err error
			if x.group.Rank() == m.from {
				err = x.send(m, tag)
			} else {
				v, err = x.receive(m, tag)
			}
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); v != nil && err == nil {
				got[m.name] = v
			}
		})
	}
	work.Wait()
	return got, errors.Join(errs...)
}

// start is run in the background. That ends when it has ended on all ranks.
func (x *exchange) start() {
	x.ended = make(chan struct{})
	go func() {
		defer close(x.ended)
		if x.received, x.err = x.run(); x.err == nil {
			x.err = comm.Barrier(x.ctx, x.group)
		}
	}()
}

// wait returns what has come of start.
func (x *exchange) wait(ctx context.Context) (map[string]*version, error) {
	select {
	case <-x.ended:
		return x.received, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send sends a head (the commit, the checksum of what is shared, and the bytes of the manifest), the manifest, and the contents.
func (x *exchange) send(m move, tag int) error {
	v := x.sends[m.name]
	if v == nil {
		return fmt.Errorf("elastic: this rank has committed nothing for part %q", m.name)
	}
	head := []uint64{v.id.Round, v.id.Number, uint64(x.shared), uint64(len(v.manifest))}
	return errors.Join(
		comm.Send(x.ctx, x.group, head, m.to, tag),
		comm.Send(x.ctx, x.group, v.manifest, m.to, tag),
		comm.Send(x.ctx, x.group, v.contents, m.to, tag))
}

// receive returns what send on another rank sends.
func (x *exchange) receive(m move, tag int) (*version, error) {
	head := make([]uint64, 4)
	if _, err := comm.Recv(x.ctx, x.group, head, m.from, tag); err != nil {
		return nil, err
	}
	if id := (ID{head[0], head[1]}); id != x.id {
		return nil, argument("rank %d makes commit %d, and rank %d commit %d: all ranks commit at the same points of the program",
			m.from, id.Number, m.to, x.id.Number)
	}
	if head[2] != uint64(x.shared) {
		return nil, argument("commit %d has other values on rank %d than on rank %d: all ranks have to commit the same, at the same point of the program",
			x.id.Number, m.from, m.to)
	}
	manifest, err := manifestFrom(m.from, head[3])
	if err != nil {
		return nil, err
	}
	if _, err := comm.Recv(x.ctx, x.group, manifest, m.from, tag); err != nil {
		return nil, err
	}
	v, err := newVersion(manifest, x.spares[m.name])
	if err != nil {
		return nil, err
	}
	v.id = x.id
	_, err = comm.Recv(x.ctx, x.group, v.contents, m.from, tag)
	return v, err
}
