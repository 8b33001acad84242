package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// A Group is an ordered set of ranks that talk to each other. This rank is one of them.
type Group struct {
	World     *World
	Comm      *endpoint.Communicator
	Ranks     []int // world ranks in group order
	Timeout   time.Duration
	OnFailure func(error) // called for every call that fails

	id    uint64
	alone sync.Map    // the ids of MembersAlone
	index map[int]int // world rank -> group rank
	rank  int         // this rank's group rank

	order     order
	history   call.History              // of the collectives whose turn has come
	reported  atomic.Bool               // a call has returned that collectives do not match
	noSharing atomic.Bool               // members do not share memory
	backends  atomic.Pointer[[]Backend] // the first that takes a call carries it out; messages takes every call

	// Only for the goroutine that carries out a collective:
	blocking   Collective  // the call that Do carries out at once
	running    *Collective // the call that a team carries out
	memory     *memory     // the first backend, if it is that, and calls bind no thread: only perform does
	messages   messages
	unattached bool  // attach has not made the backend that members have to agree on
	here       []int // the members on this machine, once they share memory
	scratch    pipeline.Scratch
}

// NewGroup makes the group of the given world ranks. id is the same on all of them.
func NewGroup(w *World, id uint64, ranks []int, timeout time.Duration, rules choice.Tuning) (*Group, error) {
	comm, err := w.Endpoint.Open(id, ranks)
	if err != nil {
		return nil, err
	}
	g := &Group{
		World: w, Comm: comm, id: id, Ranks: ranks, index: make(map[int]int, len(ranks)), Timeout: timeout,
		OnFailure: func(error) {},
	}
	for i, r := range ranks {
		g.index[r] = i
	}
	g.rank = g.index[w.Rank]
	g.messages = messages{
		g: g, planner: plan.NewPlanner(g.table(), rules),
		pipeline: pipeline.New(comm, ranks, g.rank, g.chunkSize()),
	}
	g.messages.mostJoined = g.mostJoined()
	g.blocking.g = g
	if len(ranks) == 1 {
		g.use(&self{local{g: g}})
	} else {
		g.unattached = true
	}
	w.Heap.Retain()
	return g, nil
}

// Planner returns what makes plans for the group's messages.
func (g *Group) Planner() *plan.Planner { return &g.messages.planner }

// Pipeline returns what carries out the group's plans.
func (g *Group) Pipeline() *pipeline.Pipeline { return &g.messages.pipeline }

// InMemory returns which algorithms members on this machine use in the memory that they share.
func (g *Group) InMemory() choice.Chooser {
	c := choice.Chooser{Table: choice.SharedMemory, Tuning: g.messages.planner.Tuning}
	if g.World.hasProcessors() {
		c.Table = choice.OwnProcessors
	}
	return c
}

// Rank is this process's rank in the group.
func (g *Group) Rank() int { return g.rank }

// Size is the number of ranks in the group.
func (g *Group) Size() int { return len(g.Ranks) }

// Has reports whether there is such a rank.
func (g *Group) Has(rank int) bool { return rank >= 0 && rank < len(g.Ranks) }

// WorldRank is the world rank of a group rank, or -1 if there is none.
func (g *Group) WorldRank(rank int) int {
	if !g.Has(rank) {
		return -1
	}
	return g.Ranks[rank]
}

// GroupRank is the group rank of a world rank, or -1 if it is not a member.
func (g *Group) GroupRank(world int) int {
	if i, ok := g.index[world]; ok {
		return i
	}
	return -1
}

// Release releases the group's memory as soon as no collective is under way. The communicator has been closed.
func (g *Group) Release() { g.order.retire(g.release) }

// Err returns why the group cannot be used, or nil.
func (g *Group) Err() error {
	const op = "Group.Err"
	if g == NoGroup {
		return &Error{Kind: BadArgument, Op: op, Err: ErrNoGroup}
	}
	err := g.Comm.Err()
	if err == nil {
		return nil
	}
	return &Error{Group: g, Op: op, Elem: 1, Err: err}
}

// Done is closed when the group cannot be used any more.
func (g *Group) Done() <-chan struct{} {
	if g == NoGroup {
		return alreadyDone
	}
	return g.Comm.Context().Done()
}

// bind binds the thread of a call until unbind, if the world's calls do so.
func (g *Group) bind() (unbind func()) {
	if g == NoGroup || g.World.Bind == nil {
		return func() {}
	}
	return g.World.Bind()
}

// polled returns ctx, of a call that the caller's goroutine waits for, with which waits that last poll.
func (g *Group) polled(ctx context.Context) context.Context {
	if g == NoGroup {
		return ctx
	}
	return endpoint.WithPoll(ctx, g.World.Poll)
}

// Abort fails the group on every member because of cause.
func (g *Group) Abort(cause error) {
	g.Comm.Abort(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: g.World.Rank, Text: cause.Error(), Err: cause})
	g.Comm.AwaitNotified(NotifyTimeout)
}

// Compare checks whether other members have made the same calls as this rank, as far as that is known here: it waits
// for no rank. If they have not, it returns an error, unless a call has returned that already.
func (g *Group) Compare() error {
	last, idle := g.order.block()
	if idle {
		for _, b := range g.others() {
			if !g.Comm.Usable() {
				break
			}
			if err := b.Compare(); err != nil {
				g.Comm.Fail(err)
			}
		}
		g.pass(last)
	}
	g.Comm.CompareAll()
	err := g.Comm.Err()
	if f, ok := errors.AsType[*diagnosis.Failure](err); !ok || f.Kind != diagnosis.Mismatched || g.reported.Load() {
		return nil
	}
	g.OnFailure(err)
	return &Error{Group: g, Op: "Close", Seq: last, Elem: 1, Err: err}
}

// Unattended returns the collectives that have not ended and that nobody has waited for, unless the group has failed.
func (g *Group) Unattended() (names []string) {
	if !g.Comm.Usable() {
		return nil
	}
	for _, c := range g.order.underWay() {
		if !c.attended.Load() {
			names = append(names, c.name())
		}
	}
	return names
}

// Pending returns the operations of I-forms that have not ended.
func (g *Group) Pending() (names []string) {
	for _, c := range g.order.underWay() {
		names = append(names, c.name())
	}
	return append(names, g.Comm.Pending()...)
}

// wireSize returns the bytes of an element in the messages of c.
func (g *Group) wireSize(c call.Call) int {
	t, kernel, more := reduce.Type(c.Type), reduce.Sum, c.Reduce == call.CodePreMulSum || c.Reduce == call.CodeAvg
	if c.Reduce > 0 && int(c.Reduce) < len(call.Basic) {
		kernel = call.Basic[c.Reduce].Kernel
	}
	if c.Reduce == 0 || c.Reduce == call.CodeOwn || !g.widens(t, kernel, more, false) {
		return t.Size()
	}
	return reduce.Float32.Size()
}
