package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// Members of a group that are on one machine share memory of their own, through which they carry out its collectives,
// or their stage of them if the group is on several machines.
//
// They attach that memory in the first collective that can use it. The first member on a machine creates it and tells
// the others there whether it could, and they attach it. Then the whole group agrees whether all members have it. If
// one does not, the group uses messages only, and logs that.

// attachTimeout is how long a rank may take to attach memory.
const attachTimeout = 10 * time.Second

// Placed returns where the group's members are.
func (g *Group) Placed() plan.Nodes {
	machines := make([]string, g.Size())
	for i, r := range g.Ranks {
		machines[i] = g.World.Peers[r].memory()
	}
	return plan.Placed(g.rank, machines)
}

// SharesMemory reports whether some members share memory. Before the first collective it reports whether they may.
func (g *Group) SharesMemory() bool { return !g.noSharing.Load() && g.World.canShare(g.Ranks) }

// Each rank has a verdict on whether to share memory. The group uses the least one.
const (
	tooMany = iota // ranks for the processors: messages are faster
	cannotShare
	shares
)

// attach makes the backend that members have to agree on: memory if all members are on one machine, and otherwise stages, with a team on
// every machine that has more than one of them. It does so once. It fails if the group has failed.
func (c *Collective) attach() error {
	g := c.g
	if err := g.Comm.Err(); err != nil || !g.unattached || !InMemory(c.kind()) {
		return err
	}
	g.unattached = false
	if !g.World.canShare(g.Ranks) {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	at := g.Placed()
	mem, verdict, problem, err := c.share(call.Checksum(g.id, "memory"), at)
	switch {
	case err != nil:
		return errors.Join(err, mem.Close())
	case verdict < shares:
		g.noSharing.Store(true)
		if verdict == cannotShare {
			_, err = c.least(verdict) // a rank that leaves takes its memory along, and then this fails
		}
		if err == nil && verdict == cannotShare && len(at.Here()) > 1 {
			err = g.World.OnFallback(cmp.Or(problem, errors.New("another rank has none")))
		}
		return errors.Join(err, mem.Close())
	}
	var team *shm.Team
	if mem != nil {
		if team, err = shm.New(mem, len(at.Here()), at.LocalRank, g.World.Processors(), g.InMemory(), g.waitLong); err != nil {
			return errors.Join(err, mem.Close())
		}
	}
	g.here = at.Here()
	if len(at.Members) == 1 {
		team.Share(g.Comm.Context(), g.World.Heap, g.acceptors())
		m := &memory{local{g, team}}
		if g.use(m); g.World.Bind == nil && len(g.others()) == 1 {
			g.memory = m
		}
	} else {
		leastPiece, mostPiece := g.pieceSizes()
		g.use(&stages{local: local{g, team}, layout: &hier.Layout{
			Nodes: at, Planner: g.messages.planner, Team: team, LeastPiece: leastPiece, MostPiece: mostPiece,
		}})
	}
	return nil
}

// share returns the memory that is exported by key, which the first rank of every machine creates, and the verdict of
// all ranks. problem says why this rank has no memory.
func (c *Collective) share(key uint64, at plan.Nodes) (mem *segment.Segment, verdict byte, problem, err error) {
	g, here := c.g, at.Here()
	word := make([]byte, c.elem) // the first byte is the verdict; plans move whole elements
	if at.LocalRank == 0 {
		if len(here) > 1 {
			mem, problem = segment.Create(shm.Size(len(here)))
		}
		if mem != nil {
			g.World.Acceptor.Export(key, mem)
			defer g.World.Acceptor.Remove(key)
		}
		word[0] = g.verdict(mem, len(here))
	}
	if err := c.exchangeInPlace(plan.BinomialBroadcast(at.LocalRank, len(here), 1, 0).Among(here), word); err != nil {
		return mem, cannotShare, problem, err
	}
	if at.LocalRank != 0 && word[0] > cannotShare {
		mem, problem = g.attachMemory(key, here[0])
		word[0] = min(word[0], g.verdict(mem, len(here)))
	}
	verdict, err = c.least(word[0])
	return mem, verdict, problem, err
}

// least returns the least of the verdicts of all ranks.
func (c *Collective) least(verdict byte) (byte, error) {
	g, word := c.g, make([]byte, c.elem)
	word[0] = verdict
	agreed := pipeline.InPlace(g.messages.planner.AllReduce(g.rank, g.Size(), 1, c.elem, false), word)
	agreed.Kernel = func(dst, a, b []byte) { dst[0] = min(a[0], b[0]) }
	err := c.exchange(&agreed)
	return word[0], err
}

// verdict returns this rank's verdict. mem is the memory of the members on this machine; nil: there is none.
func (g *Group) verdict(mem *segment.Segment, here int) byte {
	switch {
	case !g.World.MustShare && !g.World.Processors().Suffice(here):
		return tooMany
	case mem == nil && here > 1:
		return cannotShare
	}
	return shares
}

// attachMemory attaches the memory that rank exports by key.
func (g *Group) attachMemory(key uint64, rank int) (*segment.Segment, error) {
	ctx, cancel := context.WithTimeout(g.Comm.Context(), attachTimeout)
	defer cancel()
	return acceptor.Attach(ctx, g.World.Peers[g.Ranks[rank]].Acceptor, g.World.Token, key)
}

func (g *Group) acceptors() []string {
	addresses := make([]string, g.Size())
	for r, world := range g.Ranks {
		addresses[r] = g.World.Peers[world].Acceptor
	}
	return addresses
}
