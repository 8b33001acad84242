package comm

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/shm"
)

// The members of a group that share memory are a team: all of them, or those of one machine.

// disband ends the group's teams, and its hold on the world's memory. Nothing of them is under way, nor will be.
func (g *Group) disband() {
	t := g.team.Swap(nil)
	if g.nodes != nil {
		t, g.nodes = g.nodes.team, nil
	}
	if t != nil {
		_ = t.Close() // memory of its own: nothing can be wrong
	}
	g.w.heap.Release()
}

// hasTeam says whether the collective, whose turn has come, is one for a team that its ranks are.
func (c *collective) hasTeam() bool {
	t := c.g.team.Load()
	return t != nil && callKind(c.call.Op).isForTeams() && t.Fits(c.elem)
}

// convene lets the team of the members here, if they are one, begin the collective, which in words is w.
func (c *collective) convene(w endpoint.Words) {
	if !callKind(c.call.Op).isForTeams() {
		return
	}
	c.team = c.g.team.Load()
	if c.g.nodes != nil {
		c.team = c.g.nodes.team
	}
	if c.team != nil {
		c.g.running = c
		c.team.Begin(c.seq, shm.Call(w), c.g.history.Digest())
	}
}

// adjourn ends what convene has begun, well or with err.
func (c *collective) adjourn(err error) {
	if c.team == nil {
		return
	}
	c.g.lane.Moved(c.seq, c.team.Sent, c.team.Received)
	if err != nil {
		c.team.Abandon()
	}
	c.team = nil
}

// together ends what ranks here have done as a team, which is the same on all of them: well, or with err.
func (c *collective) together(err error) error {
	c.team.Next()
	if err != nil {
		return c.teamFailure(err)
	}
	return nil
}

// mate is the world rank of a rank of the team here.
func (g *Group) mate(place int) int {
	if g.nodes != nil {
		place = g.nodes.Here()[place]
	}
	return g.ranks[place]
}

// lasting waits for a rank of the team here, for as long as it may take.
func (g *Group) lasting(place int, d shm.Doze) error {
	c := g.running
	if c == &g.present {
		c.call = endpoint.CallOf(endpoint.Words(g.team.Load().Call()))
	}
	return c.await(g.mate(place), d)
}

// await waits for d, which is up to the given world rank.
func (c *collective) await(rank int, d shm.Doze) error {
	op := c.g.lane.Await(rank, c.seq, c.call, d.Over)
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		d.Sleep()
		op.Withdraw()
	}()
	err := op.Wait(c.ctx, c.left())
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
	return g.asMismatch(m)
}

// asMismatch is m in the words of the endpoint.
func (g *Group) asMismatch(m *shm.Mismatch) *endpoint.Failure {
	mine, theirs, mate := endpoint.Words(m.Mine.Call), endpoint.Words(m.Theirs.Call), g.mate(m.Rank)
	return &endpoint.Failure{
		Kind: endpoint.Mismatched, Rank: mate, Text: "called something else",
		Calls: []endpoint.RankCall{
			{Rank: g.w.rank, Seq: m.Mine.Seq, Call: endpoint.CallOf(mine)},
			{Rank: mate, Seq: m.Theirs.Seq, Call: endpoint.CallOf(theirs)},
		},
		Agreed: m.Agreed, Earlier: m.Mine.Seq != m.Theirs.Seq || mine.Before() != theirs.Before(),
	}
}

// unreachable is the error of a collective for which memory that rank shares cannot be had.
func (g *Group) unreachable(rank int, err error) error {
	if f := g.lane.Gone(rank); f != nil {
		return f
	}
	if g.w.died(rank) == endpoint.Dead {
		return &endpoint.Failure{Kind: endpoint.PeerFailed, Rank: rank, Text: "died"}
	}
	return fmt.Errorf("memory that rank %d shares: %w", rank, err)
}
