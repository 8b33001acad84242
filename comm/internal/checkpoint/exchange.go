package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gorun/gorun/comm"
)

// An exchange is the parts of a commit that are sent from rank to rank. Not using Checkpoints, it can go on beside the program.
type exchange struct {
	ctx   context.Context
	group *comm.Group
	moves []move
	id    ID
	gives map[string]*version // what this rank sends
	rooms map[string]*memory  // for what it receives

	ended    chan struct{} // what start has led to:
	received map[string]*version
	err      error
}

// exchange returns the moves of a commit, for which it takes spare memory.
func (c *Checkpoints) exchange(ctx context.Context, moves []move, id ID) *exchange {
	x := &exchange{ctx: ctx, group: c.group, moves: moves, id: id, gives: make(map[string]*version), rooms: make(map[string]*memory)}
	for _, m := range moves {
		chain := c.chain(m.name)
		if m.from == c.group.Rank() {
			x.gives[m.name] = chain.find(id)
		}
		if m.to == c.group.Rank() {
			x.rooms[m.name], chain.spare = chain.spare, nil
		}
	}
	return x
}

// run sends and receives, all at once. It returns what it has received, also with an error.
func (x *exchange) run() (map[string]*version, error) {
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		got  = make(map[string]*version)
		errs []error
	)
	for tag, m := range x.moves {
		switch x.group.Rank() {
		case m.from:
			work.Go(func() {
				err := x.send(m, tag)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		case m.to:
			work.Go(func() {
				v, err := x.receive(m, tag)
				mu.Lock()
				defer mu.Unlock()
				if errs = append(errs, err); err == nil {
					got[m.name] = v
				}
			})
		}
	}
	work.Wait()
	return got, errors.Join(errs...)
}

// start is run in the background. It ends when it has done so on all ranks.
func (x *exchange) start() {
	x.ended = make(chan struct{})
	go func() {
		defer close(x.ended)
		if x.received, x.err = x.run(); x.err == nil {
			x.err = comm.Barrier(x.ctx, x.group)
		}
	}()
}

// wait returns what start has led to.
func (x *exchange) wait(ctx context.Context) (map[string]*version, error) {
	select {
	case <-x.ended:
		return x.received, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (x *exchange) send(m move, tag int) error {
	v := x.gives[m.name]
	if v == nil {
		return fmt.Errorf("elastic: this rank has committed nothing for part %q", m.name)
	}
	head := []uint64{v.id.Round, v.id.Number, uint64(len(v.manifest))}
	return errors.Join(
		comm.Send(x.ctx, x.group, head, m.to, tag),
		comm.Send(x.ctx, x.group, v.manifest, m.to, tag),
		comm.Send(x.ctx, x.group, v.contents(), m.to, tag))
}

func (x *exchange) receive(m move, tag int) (*version, error) {
	head := make([]uint64, 3)
	if _, err := comm.Recv(x.ctx, x.group, head, m.from, tag); err != nil {
		return nil, err
	}
	if id := (ID{head[0], head[1]}); id != x.id {
		return nil, argument("rank %d makes commit %d, and rank %d commit %d: all ranks commit at the same points of the program",
			m.from, id.Number, m.to, x.id.Number)
	}
	if head[2] > most {
		return nil, argument("rank %d sends entries of %d bytes: the limit is %d", m.from, head[2], most)
	}
	manifest := make([]byte, head[2])
	if _, err := comm.Recv(x.ctx, x.group, manifest, m.from, tag); err != nil {
		return nil, err
	}
	v, err := newVersion(manifest, x.rooms[m.name])
	if err != nil {
		return nil, err
	}
	v.id = x.id
	_, err = comm.Recv(x.ctx, x.group, v.contents(), m.from, tag)
	return v, err
}
