package comm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Ranks of one machine carry out the collectives of a group whose members are all there through memory that they share.
// They attach to it when they first need it: the first member makes it and tells the others whether it could, they fetch
// it, and all agree whether everybody has it. If one has not, the group does without, and so says a line of the log.

// fetchTimeout is how long a rank may take to get memory that has been made.
const fetchTimeout = 10 * time.Second

// openDesk opens a desk for this rank, and lets me tell of it, unless ranks are to do without or it cannot be had.
func (c *config) openDesk(me *rankInfo) (*shm.Desk, error) {
	if c.transport == "tcp" {
		return nil, nil
	}
	machine, err := shm.Machine()
	var desk *shm.Desk
	if err == nil {
		desk, err = shm.OpenDesk([]byte(c.token), c.log)
	}
	switch {
	case err == nil:
		me.Machine, me.Desk = machine, desk.Address()
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
		if other.Desk == "" || other.Machine != me.Machine {
			return fmt.Errorf("transport shm: rank %d on %s does not share memory with this one on %s", r, other.Host, me.Host)
		}
	}
	return nil
}

// canShare says whether the members of ranks are on one machine and may share memory.
func (w *world) canShare(ranks []int) bool {
	if w.desk == nil || len(ranks) < 2 {
		return false
	}
	here := w.info[w.rank]
	for _, r := range ranks {
		if w.info[r].Desk == "" || w.info[r].Machine != here.Machine {
			return false
		}
	}
	return true
}

// The steps of attaching to shared memory end with a verdict of each rank; the least counts.
const (
	tooMany = iota // ranks for the processors: they are better off without
	cannotShare
	shares
)

// attach lets the group have a team, if it can have one and does not yet.
func (c *collective) attach() error {
	g := c.g
	if !g.unattached {
		return nil
	}
	g.unattached = false
	segment, verdict, problem, err := c.share(checksum(g.id, "memory"))
	switch {
	case err != nil:
		return errors.Join(err, segment.Close())
	case verdict == tooMany:
		return segment.Close()
	case verdict == cannotShare:
		return errors.Join(g.doWithout(problem), segment.Close())
	}
	team, err := shm.New(segment, g.Size(), g.rank, g.w.processors(), g.lasting)
	if err != nil {
		return errors.Join(err, segment.Close())
	}
	team.Share(g.w.heap, g.desks())
	g.team.Store(team)
	return g.lane.Begin(c.seq, c.call) // once more: what this has moved does not count
}

// share gets the memory of that key, which the group's first rank makes, and returns what all have agreed on, and why this
// rank has none if that is so.
func (c *collective) share(key uint64) (segment *shm.Segment, verdict byte, problem, err error) {
	g := c.g
	word := make([]byte, c.elem) // the first byte is the verdict; an element is what a plan moves
	if g.rank == 0 {
		if segment, problem = shm.Create(shm.Size(g.Size())); problem == nil {
			g.w.desk.Offer(key, segment)
			defer g.w.desk.Withdraw(key)
		}
		word[0] = g.verdict(segment)
	}
	told := inPlace(plan.BinomialBroadcast(g.rank, g.Size(), 1, 0), word)
	if err := c.execute(&told); err != nil {
		return segment, cannotShare, problem, err
	}
	if g.rank != 0 && word[0] > cannotShare {
		segment, problem = g.fetch(key)
		word[0] = min(word[0], g.verdict(segment))
	}
	agreed := inPlace(plan.AllReduce(g.rank, g.Size(), 1, c.elem, false), word)
	agreed.kernel = func(dst, a, b []byte) { dst[0] = min(a[0], b[0]) }
	err = c.execute(&agreed)
	return segment, word[0], problem, err
}

// verdict is this rank's, which has the group's memory, or nil.
func (g *Group) verdict(segment *shm.Segment) byte {
	switch {
	case !g.w.mustShare && !g.w.processors().Serve(g.Size()):
		return tooMany
	case segment == nil:
		return cannotShare
	}
	return shares
}

// fetch gets the group's memory from its first rank.
func (g *Group) fetch(key uint64) (*shm.Segment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	return shm.Fetch(ctx, g.w.info[g.ranks[0]].Desk, g.w.token, key)
}

// doWithout tells that the ranks of this machine cannot share memory, once for a world.
func (g *Group) doWithout(problem error) error {
	if problem == nil {
		problem = errors.New("another rank has none")
	}
	if g.w.mustShare {
		return fmt.Errorf("transport shm: no shared memory: %w", problem)
	}
	g.w.without.Do(func() {
		g.w.log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", problem)
	})
	return nil
}

// desks is where the group's ranks get memory of each other's.
func (g *Group) desks() []string {
	desks := make([]string, g.Size())
	for r, world := range g.ranks {
		desks[r] = g.w.info[world].Desk
	}
	return desks
}

// disband ends the group's team, and its hold on the world's memory. Nothing of it is under way, nor will be.
func (g *Group) disband() {
	if t := g.team.Swap(nil); t != nil {
		_ = t.Close() // memory of its own: nothing can be wrong
	}
	g.w.heap.Release()
}

// hasTeam says whether the collective, whose turn has come, is one for a team that its ranks are.
func (c *collective) hasTeam() bool {
	t := c.g.team.Load()
	return t != nil && callKind(c.call.Op).isForTeams() && t.Fits(c.elem)
}

// together carries out part, which is the same on all ranks, as the group's team.
func (c *collective) together(part func(t *shm.Team) error) error {
	team := c.g.team.Load()
	c.g.running = c
	team.Begin(c.seq, shm.Call(c.call.Words()))
	err := part(team)
	c.g.lane.Moved(c.seq, team.Sent, team.Received)
	if err == nil {
		team.End()
	} else {
		team.Abandon()
	}
	return c.teamFailure(err)
}

// lasting waits for rank of the group, for as long as it may take.
func (g *Group) lasting(rank int, d shm.Doze) error {
	c := g.running
	if c == &g.present {
		c.call = endpoint.CallOf(endpoint.Words(g.team.Load().Call()))
	}
	return c.await(rank, d)
}

func (c *collective) await(rank int, d shm.Doze) error {
	op := c.g.lane.Await(c.g.ranks[rank], c.seq, c.call, d.Over)
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		d.Sleep()
		op.Withdraw()
	}()
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.g.timeout)
	}
	err := op.Wait(c.ctx, max(time.Until(c.deadline), time.Nanosecond))
	d.Rouse()
	<-awake
	return err
}

// teamFailure is err in the words of the endpoint.
func (c *collective) teamFailure(err error) error {
	g := c.g
	var (
		m *shm.Mismatch
		u *shm.Unreachable
	)
	switch {
	case errors.As(err, &u):
		return g.unreachable(g.ranks[u.Rank], u.Err)
	case !errors.As(err, &m):
		return err
	}
	return &endpoint.Failure{
		Kind: endpoint.Mismatched, Rank: g.ranks[m.Rank], Text: "called something else",
		Calls: []endpoint.RankCall{
			{Rank: g.w.rank, Seq: c.seq, Call: c.call},
			{Rank: g.ranks[m.Rank], Seq: c.seq, Call: endpoint.CallOf(endpoint.Words(m.Call))},
		},
	}
}

// unreachable is the error of a collective for which memory that rank shares cannot be had.
func (g *Group) unreachable(rank int, err error) error {
	if g.w.died(rank) == endpoint.Dead {
		return &endpoint.Failure{Kind: endpoint.PeerFailed, Rank: rank, Text: "died"}
	}
	return fmt.Errorf("memory that rank %d shares: %w", rank, err)
}
