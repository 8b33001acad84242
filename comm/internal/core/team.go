package core

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/internal/wait"
)

// The members of a group that share memory are a team: all of them, or those of one machine.

// release closes the group's backends, and releases the world's heap. No collective uses them, or will use them.
func (g *Group) release() {
	for _, b := range g.others() {
		b.Close()
	}
	g.memory = nil
	g.backends.Store(nil)
	g.World.Heap.Release()
}

// TeamOfAll reports whether all members form one team.
func (g *Group) TeamOfAll() bool {
	return slices.ContainsFunc(g.others(), func(b Backend) bool {
		_, is := b.(*memory)
		return is
	})
}

// worldRank returns the world rank of a rank of the team.
func (g *Group) worldRank(rank int) int {
	return g.Ranks[g.here[rank]]
}

// waitLong waits for a rank of the team, for as long as it takes.
func (g *Group) waitLong(rank int, w wait.LongWait) error {
	return g.running.await(g.worldRank(rank), w)
}

// await waits for w, a long wait for a world rank. It fails if that rank dies, or if the call is cancelled or times
// out.
func (c *Collective) await(rank int, w wait.LongWait) error {
	op := c.g.Comm.Await(rank, c.seq, c.begun.Call(), w.Done)
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		w.Park()
		op.Withdraw()
	}()
	err := op.Wait(c.Context(), c.Remaining())
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
	if o, ok := errors.AsType[*shm.OtherLength](err); ok {
		return g.otherLength(o)
	}
	return err
}

// otherLength returns o, which ended the call under way, as a failure of the group.
func (g *Group) otherLength(o *shm.OtherLength) *diagnosis.Failure {
	seq, what, other := g.running.seq, g.running.begun.Call(), g.worldRank(o.Rank)
	return &diagnosis.Failure{
		Kind: diagnosis.Mismatched, Rank: other, Text: "sent a message of another length",
		Calls: []diagnosis.RankCall{
			{Rank: g.World.Rank, Seq: seq, Call: what, Bytes: o.Want}, {Rank: other, Seq: seq, Call: what, Bytes: o.Got},
		},
	}
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
