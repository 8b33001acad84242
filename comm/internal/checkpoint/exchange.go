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
	maps   bool   // receivers on the sender's machine map its memory instead of receiving a copy
	id     ID
	shared uint32              // checksum of the Trees of what is shared, which are the same on all ranks; that of the Bytes would take long
	sends  map[string]*version // what this rank sends, by name
	spares map[string]*memory  // for what it receives, by name

	ended    chan struct{}       // closed at the end of what start has begun; after that:
	received map[string]*version // what has arrived, by name
	err      error
}

// newExchange returns an exchange that has not begun. For what this rank will receive, it takes spare memory.
func (c *Checkpoints) newExchange(ctx context.Context, moves []move, id ID, maps bool) *exchange {
	x := &exchange{ctx: ctx, group: c.group, moves: moves, maps: maps, id: id, sends: make(map[string]*version), spares: make(map[string]*memory)}
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

// A head is what a sender begins with.
type head struct {
	ID
	shared             uint32 // checksum: see exchange
	manifest, contents uint64 // their bytes
	place                     // of the memory, if the receiver may map it
}

const headLength = 10

func (h head) encode() []uint64 {
	p := h.place
	return []uint64{h.Round, h.ID.Number, uint64(h.shared), h.manifest, h.contents, p.PID, p.FD, p.Size, p.Number[0], p.Number[1]}
}

func decodeHead(b []uint64) head {
	return head{ID{b[0], b[1]}, uint32(b[2]), b[3], b[4], place{b[5], b[6], b[7], [2]uint64{b[8], b[9]}}}
}

// What a receiver answers to a head. After the first two comes the manifest.
const (
	wantCopy   = iota
	wantNoCopy // it has mapped the memory
	refuse     // it has an error
)

// send sends a head, and what the receiver wants.
func (x *exchange) send(m move, tag int) error {
	v := x.sends[m.name]
	if v == nil {
		return fmt.Errorf("elastic: this rank has committed nothing for part %q", m.name)
	}
	h := head{ID: v.id, shared: x.shared, manifest: uint64(len(v.manifest)), contents: uint64(len(v.contents))}
	if x.maps {
		h.place = v.memory.place()
	}
	if err := comm.Send(x.ctx, x.group, h.encode(), m.to, tag); err != nil {
		return err
	}
	answer := make([]uint8, 1)
	if _, err := comm.Recv(x.ctx, x.group, answer, m.to, tag); err != nil || answer[0] == refuse {
		return err
	}
	if err := comm.Send(x.ctx, x.group, v.manifest, m.to, tag); err != nil || answer[0] == wantNoCopy {
		return err
	}
	return comm.Send(x.ctx, x.group, v.contents, m.to, tag)
}

// receive returns what send on another rank sends.
func (x *exchange) receive(m move, tag int) (*version, error) {
	b := make([]uint64, headLength)
	if _, err := comm.Recv(x.ctx, x.group, b, m.from, tag); err != nil {
		return nil, err
	}
	h := decodeHead(b)
	manifest, memory, err := x.accept(m, h)
	answer := []uint8{wantCopy}
	switch {
	case err != nil:
		answer[0] = refuse
	case memory.theirs:
		answer[0] = wantNoCopy
	}
	if err := errors.Join(err, comm.Send(x.ctx, x.group, answer, m.from, tag)); err != nil {
		return nil, err
	}
	if _, err := comm.Recv(x.ctx, x.group, manifest, m.from, tag); err != nil {
		return nil, err
	}
	v, size, err := parse(manifest)
	if err == nil && uint64(size) != h.contents {
		err = fmt.Errorf("elastic: rank %d sends %d bytes, whose entries have %d", m.from, h.contents, size)
	}
	if err != nil {
		return nil, err
	}
	v.id = x.id
	v.putIn(memory, size)
	if !memory.theirs {
		_, err = comm.Recv(x.ctx, x.group, v.contents, m.from, tag)
	}
	return v, err
}

// accept returns room for the manifest and the contents that a head announces, or why this rank does not want them.
func (x *exchange) accept(m move, h head) (manifest []byte, memory *memory, err error) {
	if h.ID != x.id {
		return nil, nil, argument("rank %d makes commit %d, and rank %d commit %d: all ranks commit at the same points of the program",
			m.from, h.ID.Number, m.to, x.id.Number)
	}
	if h.shared != x.shared {
		return nil, nil, argument("commit %d has other values on rank %d than on rank %d: all ranks have to commit the same, at the same point of the program",
			x.id.Number, m.from, m.to)
	}
	if manifest, err = manifestFrom(m.from, h.manifest); err != nil {
		return nil, nil, err
	}
	size, spare := int(h.contents), x.spares[m.name]
	if memory = h.open(size); memory != nil {
		spare.free()
		return manifest, memory, nil
	}
	memory, err = spare.orNew(size, !x.maps) // what this rank itself will send is mappable
	return manifest, memory, err
}
