package core

import (
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

// Ranks of one machine talk through memory that they share, see package near. Members of a group that are on one machine carry
// out its collectives through memory of their own: all of them, or, where they are on several machines, their stage of them.
//
// They attach to it when they first need it. The first member on a machine makes it and tells the others there whether it could; they
// fetch it; and the whole group agrees whether everybody has what there is to have. If one has not, the group does without, and a
// line of the log says so.

// attachTimeout is how long a rank may take to attach memory.
const attachTimeout = 10 * time.Second

// Placed is where the group's members are.
func (g *Group) Placed() plan.Nodes {
	machines := make([]string, g.Size())
	for i, r := range g.Ranks {
		machines[i] = g.World.Peers[r].memory()
	}
	return plan.Placed(g.rank, machines)
}

// SharesMemory reports whether some members share memory, or may: the first collective finds that out.
func (g *Group) SharesMemory() bool { return !g.flat.Load() && g.World.canShare(g.Ranks) }

// The steps of attaching to shared memory end with a verdict of each rank; the least counts.
const (
	tooMany = iota // ranks for the processors: they are better off without
	cannotShare
	shares
)

// attach lets the group have a team, or one on every machine where it has more than one member, if it can have that and does
// not yet.
func (c *Collective) attach() error {
	g := c.g
	if !g.unattached {
		return nil
	}
	g.unattached = false
	at := g.Placed()
	mem, verdict, problem, err := c.share(call.Checksum(g.id, "memory"), at)
	switch {
	case err != nil:
		return errors.Join(err, mem.Close())
	case verdict == tooMany:
		g.flat.Store(true)
		return mem.Close()
	case verdict == cannotShare && len(at.Here()) == 1:
		g.flat.Store(true)
		return nil
	case verdict == cannotShare:
		g.flat.Store(true)
		if problem == nil {
			problem = errors.New("another rank has none")
		}
		return errors.Join(g.World.OnFallback(problem), mem.Close())
	}
	var team *shm.Team
	if mem != nil {
		if team, err = shm.New(mem, len(at.Here()), at.LocalRank, g.World.Processors(), g.Choose.Tuning, g.waitLong); err != nil {
			return errors.Join(err, mem.Close())
		}
	}
	if len(at.Members) == 1 {
		team.Share(g.World.Heap, g.acceptors())
		g.team.Store(team)
	} else {
		g.layout = &hier.Layout{Nodes: at, Choose: g.Choose, Team: team}
	}
	return g.Lane.Begin(c.seq, c.call, c.before) // once more: what this has moved does not count
}

// share gets the memory of that key, which the first rank of every machine makes, and returns what all have agreed on, and why
// this rank has none if that is so.
func (c *Collective) share(key uint64, at plan.Nodes) (mem *segment.Segment, verdict byte, problem, err error) {
	g, here := c.g, at.Here()
	word := make([]byte, c.elem) // the first byte is the verdict; an element is what a plan moves
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
	made := pipeline.InPlace(plan.BinomialBroadcast(at.LocalRank, len(here), 1, 0).Among(here), word)
	if err := c.exchange(&made); err != nil {
		return mem, cannotShare, problem, err
	}
	if at.LocalRank != 0 && word[0] > cannotShare {
		mem, problem = g.attachMemory(key, here[0])
		word[0] = min(word[0], g.verdict(mem, len(here)))
	}
	agreed := pipeline.InPlace(g.Choose.AllReduce(g.rank, g.Size(), 1, c.elem, false), word)
	agreed.Kernel = func(dst, a, b []byte) { dst[0] = min(a[0], b[0]) }
	err = c.exchange(&agreed)
	return mem, word[0], problem, err
}

// verdict is this rank's, which has the memory of the members here, or nil.
func (g *Group) verdict(mem *segment.Segment, here int) byte {
	switch {
	case !g.World.MustShare && !g.World.Processors().Suffice(here):
		return tooMany
	case mem == nil && here > 1:
		return cannotShare
	}
	return shares
}

// attachMemory attaches the memory that rank exports by that key.
func (g *Group) attachMemory(key uint64, rank int) (*segment.Segment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	return acceptor.Attach(ctx, g.World.Peers[g.Ranks[rank]].Acceptor, g.World.Token, key)
}

// acceptors is the addresses of the acceptors of the group's ranks.
func (g *Group) acceptors() []string {
	addresses := make([]string, g.Size())
	for r, world := range g.Ranks {
		addresses[r] = g.World.Peers[world].Acceptor
	}
	return addresses
}
