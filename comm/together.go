package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/near"
)

// Ranks of one machine talk through memory that they share, see package near. Members of a group that are on one machine carry
// out its collectives through memory of their own: all of them, or, where they are on several machines, their stage of them.
// They attach to it when they first need it: the first member on a machine makes it and tells the others there whether it could,
// they fetch it, and the whole group agrees whether everybody has what there is to have. If one has not, the group does without,
// and so says a line of the log.

// fetchTimeout is how long a rank may take to get memory that has been made.
const fetchTimeout = 10 * time.Second

// openDesk opens a desk for this rank, and lets me tell of it, unless ranks are to do without or it cannot be had.
func (c *config) openDesk(me *rankInfo) (*shm.Desk, error) {
	if c.transport == "tcp" {
		return nil, nil
	}
	_, err := machine.Here()
	var desk *shm.Desk
	if err == nil {
		desk, err = shm.OpenDesk(c.token.Bytes(), c.log)
	}
	switch {
	case err == nil:
		me.Desk = desk.Address()
	case c.transport == "shm":
		return nil, fmt.Errorf("transport shm: no shared memory: %w", err)
	default:
		c.log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", err)
	}
	return desk, nil
}

// checkShared makes sure that all ranks may share memory.
func (w worldDoc) checkShared(me rankInfo) error {
	for r, other := range w.Ranks {
		if other.Desk == "" || !other.SameNetwork(me.Place) {
			return fmt.Errorf("transport shm: rank %d on %s does not share memory with this one on %s", r, other.Host, me.Host)
		}
	}
	return nil
}

// canShare says whether some members of ranks are on one machine, and all may share memory with whoever is on theirs.
func (w *world) canShare(ranks []int) bool {
	machines := map[string]bool{}
	for _, r := range ranks {
		if w.info[r].Desk == "" {
			return false
		}
		machines[w.info[r].memory()] = true
	}
	return len(machines) < len(ranks)
}

// placed is where the group's members are.
func (g *Group) placed() plan.Nodes {
	machines := make([]string, g.Size())
	for i, r := range g.ranks {
		machines[i] = g.w.info[r].memory()
	}
	return plan.Placed(g.rank, machines)
}

// The steps of attaching to shared memory end with a verdict of each rank; the least counts.
const (
	tooMany = iota // ranks for the processors: they are better off without
	cannotShare
	shares
)

// attach lets the group have a team, or one on every machine where it has more than one member, if it can have that and does
// not yet.
func (c *collective) attach() error {
	g := c.g
	if !g.unattached {
		return nil
	}
	g.unattached = false
	at := g.placed()
	segment, verdict, problem, err := c.share(checksum(g.id, "memory"), at)
	switch {
	case err != nil:
		return errors.Join(err, segment.Close())
	case verdict == tooMany:
		g.flat.Store(true)
		return segment.Close()
	case verdict == cannotShare && len(at.Here()) == 1:
		g.flat.Store(true)
		return nil
	case verdict == cannotShare:
		g.flat.Store(true)
		if problem == nil {
			problem = errors.New("another rank has none")
		}
		return errors.Join(g.w.without(problem), segment.Close())
	}
	var team *shm.Team
	if segment != nil {
		if team, err = shm.New(segment, len(at.Here()), at.Place, g.w.processors(), g.choose.Tuning, g.lasting); err != nil {
			return errors.Join(err, segment.Close())
		}
	}
	if len(at.Members) == 1 {
		team.Share(g.w.heap, g.desks())
		g.team.Store(team)
	} else {
		g.nodes = &nodes{at, g.choose, team}
	}
	return g.lane.Begin(c.seq, c.call, c.before) // once more: what this has moved does not count
}

// share gets the memory of that key, which the first rank of every machine makes, and returns what all have agreed on, and why
// this rank has none if that is so.
func (c *collective) share(key uint64, at plan.Nodes) (segment *shm.Segment, verdict byte, problem, err error) {
	g, here := c.g, at.Here()
	word := make([]byte, c.elem) // the first byte is the verdict; an element is what a plan moves
	if at.Place == 0 {
		if len(here) > 1 {
			segment, problem = shm.Create(shm.Size(len(here)))
		}
		if segment != nil {
			g.w.desk.Offer(key, segment)
			defer g.w.desk.Withdraw(key)
		}
		word[0] = g.verdict(segment, len(here))
	}
	told := inPlace(plan.BinomialBroadcast(at.Place, len(here), 1, 0).Among(here), word)
	if err := c.execute(&told); err != nil {
		return segment, cannotShare, problem, err
	}
	if at.Place != 0 && word[0] > cannotShare {
		segment, problem = g.fetch(key, here[0])
		word[0] = min(word[0], g.verdict(segment, len(here)))
	}
	agreed := inPlace(g.choose.AllReduce(g.rank, g.Size(), 1, c.elem, false), word)
	agreed.kernel = func(dst, a, b []byte) { dst[0] = min(a[0], b[0]) }
	err = c.execute(&agreed)
	return segment, word[0], problem, err
}

// verdict is this rank's, which has the memory of the members here, or nil.
func (g *Group) verdict(segment *shm.Segment, here int) byte {
	switch {
	case !g.w.mustShare && !g.w.processors().Serve(here):
		return tooMany
	case segment == nil && here > 1:
		return cannotShare
	}
	return shares
}

// fetch gets the memory of that key from rank.
func (g *Group) fetch(key uint64, rank int) (*shm.Segment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	return shm.Fetch(ctx, g.w.info[g.ranks[rank]].Desk, g.w.token, key)
}

// doWithout returns what tells, once, that ranks of this machine cannot share memory, and whether they may do without.
func (c *config) doWithout() func(problem error) error {
	log, must, once := c.log, c.transport == "shm", new(sync.Once)
	return func(problem error) error {
		if must {
			return fmt.Errorf("transport shm: no shared memory: %w", problem)
		}
		once.Do(func() { log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", problem) })
		return nil
	}
}

// nearby is tr for ranks of other machines, and a transport through memory for those of this one that can share it.
func (c *config) nearby(tr transport.Transport, desk *shm.Desk, world uint64, rank int, info []rankInfo) transport.Transport {
	if desk == nil {
		return tr
	}
	desks := make([]string, len(info))
	for r, other := range info {
		if other.SameNetwork(info[rank].Place) {
			desks[r] = other.Desk
		}
	}
	return near.New(desk, tr, near.Config{World: world, Rank: rank, Peers: desks, Token: c.token.Bytes(), Without: c.without})
}

// desks is where the group's ranks get memory of each other's.
func (g *Group) desks() []string {
	desks := make([]string, g.Size())
	for r, world := range g.ranks {
		desks[r] = g.w.info[world].Desk
	}
	return desks
}
