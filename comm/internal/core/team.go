package core

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/internal/wait"
)

// The members of a group that share memory are a team: all of them, or those of one machine.

// release closes the group's team, and releases the world's heap. No collective uses them, or will use them.
func (g *Group) release() {
	g.team.Store(nil)
	g.layout = nil
	if t := g.teamHere.Swap(nil); t != nil {
		_ = t.Close() // memory of its own: nothing can be wrong
	}
	g.World.Heap.Release()
}

// TeamOfAll returns the team that all members form, or nil if they do not all share memory.
func (g *Group) TeamOfAll() *shm.Team { return g.team.Load() }

// Moves is a number that changes while a long collective in shared memory, or a stage of one, goes on.
func (g *Group) Moves() uint64 {
	if t := g.teamHere.Load(); t != nil {
		return t.Moves()
	}
	return 0
}

// teamOfAll returns the team that carries out c, whose turn has come. It returns nil if the ranks form no team, or if
// the team does not carry out such calls.
func (c *Collective) teamOfAll() *shm.Team {
	if t := c.g.team.Load(); t != nil && c.kind().UsesMemory() && t.Fits(c.elem) {
		return t
	}
	return nil
}

// inStages returns c, whose turn has come, as a collective in stages, or nil if the group does not carry it out in
// stages. ordered says that the operands have to be combined in order of rank.
func (c *Collective) inStages(ordered bool) *hier.Call {
	l := c.g.layout
	if l == nil || !c.kind().UsesMemory() || ordered && !l.InOrder() {
		return nil
	}
	if _, most := l.Sizes(); !shm.Fits(most, c.elem) {
		return nil
	}
	h := &c.g.staged
	*h = hier.Call{
		Layout: l, Rank: c.g.rank, Size: c.g.Size(), RootRank: int(c.call.Root), Out: c.out.Buf, In: c.in.Buf,
		Route: &c.cached().route, Scratch: &c.g.scratch, Call: c.messages(), Pipeline: &c.g.Pipeline,
		Overlaps: c.overlaps(), Owner: c,
	}
	return h
}

// overlaps reports whether stages of c may run in two goroutines. The caller's own operations run only in the caller's.
func (c *Collective) overlaps() bool {
	return c.g.World.MayOverlap && runtime.GOMAXPROCS(0) > 1 && c.op.Own == nil
}

// beginInMemory begins the collective, whose call is p, with the team of the members on this machine, if there is one.
func (c *Collective) beginInMemory(p call.Packed) {
	if !c.kind().UsesMemory() {
		return
	}
	if c.team = c.g.teamHere.Load(); c.team != nil {
		c.g.running = c
		c.team.Begin(c.seq, shm.Call(p), c.g.history.Digest())
	}
}

// endInMemory ends what beginInMemory has begun. err says whether it has failed.
func (c *Collective) endInMemory(err error) {
	if c.team == nil {
		return
	}
	c.g.Comm.Moved(c.seq, c.team.Sent, c.team.Received)
	if err != nil {
		c.team.Abandon()
	}
	c.team = nil
}

// worldRank returns the world rank of a rank of the team.
func (g *Group) worldRank(rank int) int {
	if g.layout != nil {
		rank = g.layout.Here()[rank]
	}
	return g.Ranks[rank]
}

// waitLong waits for a rank of the team, for as long as it takes.
func (g *Group) waitLong(rank int, w wait.LongWait) error {
	c := g.running
	if c == &g.short {
		c.call = call.Packed(g.team.Load().Call()).Call()
	}
	return c.await(g.worldRank(rank), w)
}

// await waits for w, a long wait for a world rank. It fails if that rank dies, or if the call is cancelled or times
// out.
func (c *Collective) await(rank int, w wait.LongWait) error {
	op := c.g.Comm.Await(rank, c.seq, c.call, w.Done)
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		w.Park()
		op.Withdraw()
	}()
	err := op.Wait(c.ctx, c.Remaining())
	w.Wake()
	<-awake
	return err
}

// teamFailure returns err, which may be that of a team, as a failure of the group.
func (g *Group) teamFailure(err error) error {
	if u, ok := errors.AsType[*shm.Unreachable](err); ok {
		return g.unreachable(g.Ranks[u.Rank], u.Err)
	}
	if m, ok := errors.AsType[*shm.Mismatch](err); ok {
		return g.mismatch(m)
	}
	return err
}

// mismatch returns m as a failure of the group.
func (g *Group) mismatch(m *shm.Mismatch) *diagnosis.Failure {
	mine, theirs, other := call.Packed(m.Mine.Call), call.Packed(m.Theirs.Call), g.worldRank(m.Rank)
	return &diagnosis.Failure{
		Kind: diagnosis.Mismatched, Rank: other, Text: "called something else",
		Calls: []diagnosis.RankCall{
			{Rank: g.World.Rank, Seq: m.Mine.Seq, Call: mine.Call()},
			{Rank: other, Seq: m.Theirs.Seq, Call: theirs.Call()},
		},
		Agreed: m.Agreed, Earlier: m.Mine.Seq != m.Theirs.Seq || mine.Before() != theirs.Before(),
	}
}

// unreachable returns the error of a collective that cannot attach the memory of rank. That may be so because rank has
// gone, or goes, and this rank has not learned of it yet.
func (g *Group) unreachable(rank int, err error) error {
	if f := g.lost(rank); f != nil {
		return f
	}
	liveness := g.Comm.Liveness(rank) // which takes a while
	if f := g.lost(rank); f != nil {
		return f
	}
	switch {
	case liveness == diagnosis.Dead:
		return &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: rank, Text: "died"}
	case errors.Is(err, syscall.ECONNREFUSED): // it has closed the world
		return &diagnosis.Failure{Kind: diagnosis.Closed, Rank: rank, Text: "has left (nobody accepts at its socket)"}
	}
	return fmt.Errorf("memory that rank %d shares: %w", rank, err)
}

// lost returns why the group has failed, or why rank has gone, or nil.
func (g *Group) lost(rank int) error {
	if err := g.Comm.Err(); err != nil {
		return err
	}
	if f := g.Comm.Gone(rank); f != nil {
		return f
	}
	return nil
}
