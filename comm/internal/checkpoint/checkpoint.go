// Package checkpoint keeps commits of a job's state in the memory of its ranks.
//
// A state has contents that are the same on all ranks, and parts, each of which belongs to one rank. A commit is a copy of both. Each rank has
// a partner, which is on another node if there is one. The partner receives a copy of the parts of the rank, or maps their memory if both are on
// one machine. When ranks have gone, Sync brings all ranks of the next world to the newest commit of which everything is still there.
//
// A commit does not count until the partners have its parts, so until then ranks keep the commit before it as well. Where no rank has parts,
// there is one copy.
//
// Checkpoints in the memory of other nodes are those of SCR (Moody et al., SC 2010, scheme "partner") and Gemini (Wang et al., SOSP 2023).
//
//   - checkpoint.go: the copies that a rank has, and how it makes them; version.go: one copy; memory.go: where it is
//   - agree.go: with which commit a world begins, and who sends what to whom; partner.go: which rank is whose partner
//   - layout.go: whether the states of the ranks fit together
//   - sync.go: bringing a world to one commit; transfer.go: what all ranks get; exchange.go: parts, which one rank gets
package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm"
)

// An ID says which commit a copy is of. The zero ID is that of no commit: a copy with it has what a variable had when the program began.
type ID struct {
	Round  uint64 // of gorun in which it was made
	Number uint64 // from 1
}

func (id ID) compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Round, other.Round), cmp.Compare(id.Number, other.Number))
}

// Shared is the name of what all ranks have. The other names are those of parts.
const Shared = ""

// Checkpoints are the copies that a rank has of its state, and of the parts whose partner it is. One goroutine at a time uses them.
type Checkpoints struct {
	parts  []string          // of this rank, in order
	chains map[string]*chain // by name: what is shared, the parts of this rank, and those of the rank whose partner it is
	last   ID                // of the last commit of this rank
	begun  bool              // a world has begun: the program has changed its variables since it made the State

	round   uint64      // of the world
	had     int         // how many parts all its ranks have
	keepTwo bool        // parts are sent, so all keep the commit before the last one
	group   *comm.Group // for parts, if there are any
	moves   []move      // of parts to partners, after each commit
	sending *exchange   // carries out the moves of the last commit; nil once Await has seen its end
}

// A chain has the copies, of several commits, of what has one name.
type chain struct {
	initial *version // before the first commit: what the first world begins with
	newest  *version // of a commit
	before  *version // of the commit before, if there is need for it
	taken   *version // for the next commit
	spare   *memory  // for the copy that is taken or received next; nil: it gets new memory
}

// New returns Checkpoints of a rank that has these parts. It fails if one has no name, or that of another.
func New(parts ...string) (*Checkpoints, error) {
	parts = slices.Sorted(slices.Values(parts))
	for i, name := range parts {
		if name == Shared {
			return nil, errors.New("a part has no name")
		}
		if i > 0 && parts[i-1] == name {
			return nil, fmt.Errorf("two parts have the name %q", name)
		}
	}
	return &Checkpoints{parts: parts, chains: make(map[string]*chain)}, nil
}

// chain returns the chain of a name. It makes one if there is none.
func (c *Checkpoints) chain(name string) *chain {
	if c.chains[name] == nil {
		c.chains[name] = new(chain)
	}
	return c.chains[name]
}

// Number returns the number of the last commit, or 0 if there is none.
func (c *Checkpoints) Number() uint64 { return c.last.Number }

// Begun reports whether a world has begun. Before that, Sync needs what has been taken and not committed: see [Checkpoints.Sync].
func (c *Checkpoints) Begun() bool { return c.begun }

// Await waits until the partners have the parts of the last commit, and takes in what this rank has received. Then nobody needs the commit
// before. If ctx ends, it can be called again; after any other error this world is of no use.
func (c *Checkpoints) Await(ctx context.Context) error {
	if c.sending == nil {
		return nil
	}
	received, err := c.sending.wait(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.sending = nil
	c.putAll(received)
	if err != nil {
		return err
	}
	for _, chain := range c.chains {
		if chain.before != nil { // there is no need for it, as the last commit is whole
			chain.spare, chain.before = chain.before.memory, nil
		}
	}
	return nil
}

// Reserve returns the memory for a first commit whose entries have these sizes, in bytes, so that it can be populated.
func (c *Checkpoints) Reserve(name string, sizes ...int) ([]byte, error) {
	total := 0
	for _, size := range sizes {
		total += aligned(size)
	}
	m, err := newMemory(total, name != Shared)
	if err != nil {
		return nil, err
	}
	c.chain(name).spare = m
	return m.all, nil
}

// Take makes room for the next commit of what has this name, once the parts of the last one have arrived. The caller fills in the Bytes of the
// entries that it gets. If it is called again before Commit, the last call counts. Where ranks keep one commit, its memory is used again:
// until Commit, this rank has none.
func (c *Checkpoints) Take(ctx context.Context, name string, entries []Entry) ([]Entry, error) {
	if name != Shared && !slices.Contains(c.parts, name) {
		return nil, &comm.ArgumentError{Op: "elastic.Commit", Err: fmt.Errorf("this State has no part %q", name)}
	}
	if err := c.Await(ctx); err != nil {
		return nil, err
	}
	manifest, err := encode(entries)
	if err != nil {
		return nil, err
	}
	chain := c.chain(name)
	if chain.taken != nil {
		chain.spare, chain.taken = chain.taken.memory, nil
	}
	spare := chain.spare
	last := spare == nil && c.begun && !c.keepTwo && chain.newest != nil
	if last {
		spare = chain.newest.memory
	}
	v, err := newVersion(manifest, spare, name != Shared)
	if err != nil { // the last commit stays
		return nil, err
	}
	if last {
		chain.newest = nil
	}
	chain.spare, chain.taken = nil, v
	return v.entries, nil
}

// Commit makes what has been taken the last commit. It returns while the parts are sent to the partners: see [Checkpoints.Await].
func (c *Checkpoints) Commit() error {
	for _, name := range append([]string{Shared}, c.parts...) {
		if c.chain(name).taken == nil {
			return &comm.ArgumentError{Op: "elastic.Commit", Err: fmt.Errorf("%q has not been taken for this commit", name)}
		}
	}
	alone := c.group != nil && errors.Is(c.group.Err(), comm.ErrClosed)
	if alone { // the program goes on without a world: there is nobody to send to
		c.group, c.moves, c.keepTwo = nil, nil, false
	}
	c.last = ID{c.round, c.last.Number + 1}
	for _, chain := range c.chains {
		if v := chain.taken; v != nil {
			if alone { // its partner may need the last commit, so this rank does not write to its memory again
				chain.newest = nil
			}
			v.id, v.agreed = c.last, c.round
			chain.put(v)
			if chain.taken = nil; !c.keepTwo && chain.before != nil {
				chain.spare, chain.before = chain.before.memory, nil
			}
		}
	}
	if len(c.moves) > 0 {
		c.sending = c.newExchange(context.Background(), c.moves, c.last, true)
		c.sending.start()
	}
	return nil
}

// put makes v the copy of the newest commit.
func (c *chain) put(v *version) { c.before, c.newest = c.newest, v }

func (c *Checkpoints) putAll(received map[string]*version) {
	for name, v := range received {
		c.chain(name).put(v)
	}
}

// copies are those of commits, the newest first.
func (c *chain) copies() (list []*version) {
	for _, v := range []*version{c.newest, c.before} {
		if v != nil {
			list = append(list, v)
		}
	}
	return list
}

// find returns the copy of a commit, or nil.
func (c *chain) find(id ID) *version {
	for _, v := range c.copies() {
		if v.id == id {
			return v
		}
	}
	return nil
}

// Entries returns what the last commit has of a name, nil if there is no commit. The caller does not write to their Bytes, which are good until
// the next Take or Sync.
func (c *Checkpoints) Entries(name string) []Entry {
	if v := c.chain(name).newest; v != nil {
		return v.entries
	}
	return nil
}
