package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/machine"
)

// Round returns the round of gorun that this process is in, or 0 if it was not started by gorun.
func Round() uint64 {
	round, _ := strconv.ParseUint(os.Getenv("GORUN_ROUND"), 10, 64) // comm.Init has checked it
	return round
}

// Sync brings all ranks of a world to the same commit, the newest that is whole. All of them call it, with the round of this world. After that,
// Entries returns what the variables should have.
//
// Before its first world has begun, a rank takes its parts before it calls Sync, and rank 0 takes what is shared. It does not commit that: if no
// rank has a commit, Sync makes the first one of it.
//
// If Sync fails, all copies of commits are as they were, or newer. A [comm.ArgumentError] says that ranks do not fit together, or that nobody has
// some part any more.
func (c *Checkpoints) Sync(ctx context.Context, world *comm.Group, round uint64, layout Layout) error {
	c.beginSync()
	all, err := comm.AllGatherObject(ctx, world, c.report(layout))
	if err != nil {
		return err
	}
	a, err := agree(all, round)
	if err != nil {
		return err
	}
	if err := compareLayouts(ctx, world, layout, all, a.holders[0]); err != nil {
		return err
	}
	if a.initial {
		c.putInitial(world, a)
	}
	if err := c.syncShared(ctx, world, a); err != nil {
		return err
	}
	if len(a.owners) > 0 {
		if err := c.syncParts(ctx, world, a); err != nil {
			return err
		}
	}
	if err := comm.Barrier(ctx, world); err != nil { // when one rank goes on, all have the commit
		return err
	}
	c.begin(world, a)
	return nil
}

// beginSync ends what belongs to the world before, which is closed. What has been taken before the first world has begun becomes initial; later
// it is that of a step which was not completed.
func (c *Checkpoints) beginSync() {
	_ = c.Await(context.Background()) // its error is the world's
	c.group = nil
	for _, chain := range c.chains {
		if !c.begun {
			chain.initial = chain.taken
		}
		chain.taken = nil
	}
}

// putInitial makes what this rank has taken its copy of the first commit, as far as the others get that from this rank.
func (c *Checkpoints) putInitial(world *comm.Group, a agreement) {
	for name, chain := range c.chains {
		v := chain.initial
		if owner, is := a.owners[name]; v != nil && (is && owner == world.Rank() || name == Shared && a.holders[0] == world.Rank()) {
			v.id = a.id
			chain.put(v)
		}
	}
}

// begin makes the commit on which all have agreed the only one.
func (c *Checkpoints) begin(world *comm.Group, a agreement) {
	own := map[string]bool{Shared: true}
	for name, owner := range a.owners {
		own[name] = owner == world.Rank()
	}
	for _, m := range a.eachCommit {
		own[m.name] = own[m.name] || m.to == world.Rank()
	}
	for name, chain := range c.chains {
		if !own[name] {
			delete(c.chains, name)
			continue
		}
		chain.keep(a.id, len(a.eachCommit) > 0)
		chain.newest.agreed = a.round
	}
	go runtime.GC() // what has been dropped is not Go's memory, so it does not make this happen
	c.last, c.begun, c.round = a.id, true, a.round
	c.had, c.moves, c.keepTwo = len(a.owners), a.eachCommit, len(a.eachCommit) > 0
}

// keep drops all copies but that of id. If there will be two, it keeps the memory for the other one.
func (c *chain) keep(id ID, two bool) {
	kept := chain{newest: c.find(id)}
	if two {
		kept.spare = c.spare
		for _, v := range c.copies() {
			if v.memory != kept.newest.memory {
				kept.spare = v.memory
			}
		}
	}
	*c = kept
}

// report says what this rank has.
func (c *Checkpoints) report(layout Layout) report {
	place, _ := machine.Here() // without it, ranks count as on one node, or on those that GROUP_RANK tells apart
	r := report{Layout: layout.checksum(), Parts: c.parts, Had: c.had, Begun: c.begun, Sources: sourcesFor(runtime.GOMAXPROCS(0)),
		Node: place.Kernel + "/" + os.Getenv("GROUP_RANK")} // several nodes may be on one machine
	for name, chain := range c.chains {
		for _, v := range chain.copies() {
			if !v.memory.overwritten() {
				r.Copies = append(r.Copies, copyReport{name, v.id, v.agreed})
			}
		}
		if chain.initial != nil {
			r.Copies = append(r.Copies, copyReport{Name: name})
		}
	}
	return r
}

// syncShared brings all ranks to the same contents of what is shared.
func (c *Checkpoints) syncShared(ctx context.Context, world *comm.Group, a agreement) error {
	chain := c.chain(Shared)
	own := chain.find(a.id)
	if err := compareCopies(ctx, world, a, own); err != nil || len(a.receivers) == 0 {
		return err
	}
	received, err := transfer(ctx, world, a, own, chain.spare)
	if err == nil && own == nil {
		received.id, received.agreed = a.id, a.agreed
		chain.put(received)
		chain.spare = nil
	}
	return err
}

// syncParts brings each part to the rank that it belongs to, and then to the partner of that rank.
func (c *Checkpoints) syncParts(ctx context.Context, world *comm.Group, a agreement) error {
	var err error
	if c.group, err = comm.NewGroupOf(ctx, world, world.Ranks(), fmt.Sprintf("elastic: round %d, parts", a.round)); err != nil {
		return err
	}
	for _, step := range []struct {
		moves []move
		maps  bool
	}{
		{a.toOwners, false}, // an owner will write to its memory, so it gets a copy
		{a.toPartners, true},
	} {
		received, err := c.newExchange(ctx, step.moves, a.id, step.maps).run()
		for _, v := range received {
			v.agreed = a.agreed
		}
		c.putAll(received)
		if err != nil {
			return err
		}
	}
	return nil
}

// compareCopies returns an error on all ranks unless all that have the commit have the same of what is shared, as far as checksums say. own is nil
// on the others.
func compareCopies(ctx context.Context, world *comm.Group, a agreement, own *version) error {
	if len(a.holders) == 1 {
		return nil
	}
	var sums map[string]uint32
	if own != nil {
		sums = own.checksums()
	}
	all, err := comm.AllGatherObject(ctx, world, sums)
	if err != nil {
		return err
	}
	first := a.holders[0]
	for _, r := range a.holders[1:] {
		for _, name := range slices.Sorted(maps.Keys(all[first])) {
			if all[r][name] != all[first][name] {
				return argument("commit %d has other contents of %q on rank %d than on rank %d: "+
					"all ranks have to commit the same, at the same point of the program", a.id.Number, name, first, r)
			}
		}
	}
	return nil
}
