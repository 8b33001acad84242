package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
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

// run sends and receives, to and from all ranks at once. It returns what has arrived, by name, also with an error.
func (x *exchange) run() (map[string]*version, error) {
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		got  = make(map[string]*version)
		errs []error
	)
	for _, tags := range x.tags() {
		work.Go(func() {
			var vs map[string]*version
			var err error
			if x.moves[tags[0]].from == x.group.Rank() {
				err = x.send(tags)
			} else {
				vs, err = x.receive(tags)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			maps.Copy(got, vs)
		})
	}
	work.Wait()
	return got, errors.Join(errs...)
}

// tags returns the tags of this rank's moves, by sender and receiver. Moves from one rank to another are made together: there may be thousands.
func (x *exchange) tags() map[[2]int][]int {
	tags := make(map[[2]int][]int)
	for tag, m := range x.moves {
		if m.from == x.group.Rank() || m.to == x.group.Rank() {
			tags[[2]int{m.from, m.to}] = append(tags[[2]int{m.from, m.to}], tag)
		}
	}
	return tags
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

// A head is what a sender says of a part.
type head struct {
	ID
	shared             uint32 // checksum: see exchange
	manifest, contents uint64 // their bytes
	place                     // of the memory, if the receiver may map it
}

const headLength = 10

func (h head) appendTo(b []uint64) []uint64 {
	p := h.place
	return append(b, h.Round, h.ID.Number, uint64(h.shared), h.manifest, h.contents, p.PID, p.FD, p.Size, p.Number[0], p.Number[1])
}

// decodeHeads returns the heads that appendTo has put into b.
func decodeHeads(b []uint64) (heads []head) {
	for b := range slices.Chunk(b, headLength) {
		heads = append(heads, head{ID{b[0], b[1]}, uint32(b[2]), b[3], b[4], place{b[5], b[6], b[7], [2]uint64{b[8], b[9]}}})
	}
	return heads
}

// What a receiver answers to a head.
const (
	wantCopy   = iota
	wantNoCopy // it has mapped the memory
	refuse     // it has an error
)

// send sends parts from this rank to another: their heads, then, unless one of these is refused, their manifests, and the contents of those that the
// receiver has not mapped.
func (x *exchange) send(tags []int) error {
	tag, to := tags[0], x.moves[tags[0]].to
	var heads []uint64
	var manifests []byte
	for _, t := range tags {
		v := x.sends[x.moves[t].name]
		if v == nil {
			return fmt.Errorf("elastic: this rank has committed nothing for part %q", x.moves[t].name)
		}
		h := head{ID: v.id, shared: x.shared, manifest: uint64(len(v.manifest)), contents: uint64(len(v.contents))}
		if x.maps {
			h.place = v.memory.place()
		}
		heads = h.appendTo(heads)
		manifests = append(manifests, v.manifest...)
	}
	if err := comm.Send(x.ctx, x.group, heads, to, tag); err != nil {
		return err
	}
	answers := make([]uint8, len(tags))
	if _, err := comm.Recv(x.ctx, x.group, answers, to, tag); err != nil || slices.Contains(answers, refuse) {
		return err
	}
	if err := comm.Send(x.ctx, x.group, manifests, to, tag); err != nil {
		return err
	}
	for i, t := range tags {
		if answers[i] == wantCopy {
			if err := comm.Send(x.ctx, x.group, x.sends[x.moves[t].name].contents, to, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive receives the parts that another rank sends, and returns them by name. With an error, it returns those that have come before.
func (x *exchange) receive(tags []int) (map[string]*version, error) {
	tag, from := tags[0], x.moves[tags[0]].from
	encoded := make([]uint64, len(tags)*headLength)
	if _, err := comm.Recv(x.ctx, x.group, encoded, from, tag); err != nil {
		return nil, err
	}
	var (
		heads     = decodeHeads(encoded)
		memories  = make([]*memory, len(tags))
		answers   = make([]uint8, len(tags))
		manifests uint64
		errs      error
	)
	for i, t := range tags {
		var err error
		memories[i], err = x.accept(x.moves[t], heads[i])
		switch {
		case err != nil:
			answers[i], errs = refuse, cmp.Or(errs, err)
		case memories[i].theirs:
			answers[i] = wantNoCopy
		}
		manifests += heads[i].manifest
	}
	if err := errors.Join(errs, comm.Send(x.ctx, x.group, answers, from, tag)); err != nil {
		return nil, err
	}
	manifest := make([]byte, manifests)
	if _, err := comm.Recv(x.ctx, x.group, manifest, from, tag); err != nil {
		return nil, err
	}
	got := make(map[string]*version)
	for i, t := range tags {
		n := heads[i].manifest
		v, err := x.version(manifest[:n:n], memories[i], heads[i].contents)
		if err == nil && answers[i] == wantCopy {
			_, err = comm.Recv(x.ctx, x.group, v.contents, from, t)
		}
		if err != nil {
			return got, err
		}
		got[x.moves[t].name], manifest = v, manifest[n:]
	}
	return got, nil
}

// accept returns the memory for the contents that a head announces, or why this rank does not want them.
func (x *exchange) accept(m move, h head) (*memory, error) {
	if h.ID != x.id {
		return nil, argument("rank %d makes commit %d, and rank %d commit %d: all ranks commit at the same points of the program",
			m.from, h.ID.Number, m.to, x.id.Number)
	}
	if h.shared != x.shared {
		return nil, argument("commit %d has other values on rank %d than on rank %d: all ranks have to commit the same, at the same point of the program",
			x.id.Number, m.from, m.to)
	}
	if err := checkLength(m.from, h.manifest); err != nil {
		return nil, err
	}
	size, spare := int(h.contents), x.spares[m.name]
	if mapped := h.open(size); mapped != nil {
		spare.free()
		return mapped, nil
	}
	return spare.orNew(size, !x.maps) // what this rank itself will send is mappable
}

// version returns a version whose contents, size bytes, are in memory.
func (x *exchange) version(manifest []byte, memory *memory, size uint64) (*version, error) {
	v, n, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	if uint64(n) != size {
		return nil, fmt.Errorf("elastic: a rank sends %d bytes, whose entries have %d", size, n)
	}
	v.id = x.id
	v.putIn(memory, n)
	return v, nil
}
