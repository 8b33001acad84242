package core

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/shm"
)

// local is what self, memory and stages have in common: the team of the members on this machine.
type local struct {
	g    *Group
	team *shm.Team // nil: there is only this one
}

// Interrupt implements endpoint.Backend.
func (l *local) Interrupt() {
	if l.team != nil {
		l.team.Alert()
	}
}

// Abandon implements Backend.
func (l *local) Abandon() {
	if l.team != nil {
		l.team.Abandon()
	}
}

// Compare implements Backend.
func (l *local) Compare() error {
	if l.team == nil {
		return nil
	}
	return l.g.teamFailure(l.team.CompareAll())
}

// Moves implements endpoint.Backend.
func (l *local) Moves() uint64 {
	if l.team == nil {
		return 0
	}
	return l.team.Moves()
}

// Close implements Backend.
func (l *local) Close() {
	if l.team != nil {
		_ = l.team.Close() // memory of its own: nothing can be wrong
	}
}

// memory is the backend of a group whose members all share memory.
type memory struct{ local }

// inMemory is the set of the kinds of calls that ranks carry out in memory that they share, a bit for each.
const inMemory = 1<<call.KindAllReduce | 1<<call.KindReduce | 1<<call.KindReduceScatter | 1<<call.KindReduceScatterV | 1<<call.KindBroadcast |
	1<<call.KindAllGather | 1<<call.KindAllGatherV | 1<<call.KindGather | 1<<call.KindGatherV | 1<<call.KindScatter | 1<<call.KindScatterV |
	1<<call.KindAllToAll | 1<<call.KindAllToAllV | 1<<call.KindBarrier | 1<<call.KindAllReduceCoalesced

// InMemory reports whether ranks that share memory carry out calls of a kind there. It is the same on all ranks.
func InMemory(k call.Kind) bool { return inMemory>>k&1 != 0 }

// Takes implements Backend.
func (m *memory) Takes(c *Collective) bool { return InMemory(c.kind()) && m.team.Fits(c.elem) }

// Run implements Backend.
func (m *memory) Run(c *Collective) error {
	c.widen(true)
	a := Args{Kind: c.kind(), Root: c.root(), Out: c.out.Buf, In: c.in.Buf, Op: c.op}
	return m.run(c, &a)
}

// takesAsIs reports whether runAsIs carries out a call with arguments a: a team reads and writes its buffers as they are.
func (m *memory) takesAsIs(a *Args) bool {
	return InMemory(a.Kind) && m.team.Fits(a.Type.Size()) && (a.Op == nil || a.Op.IsPlain())
}

// runAsIs carries out c, a blocking call whose turn has come. It does not set all of c first, because that would take a
// noticeable part of the time of a short call.
func (m *memory) runAsIs(ctx context.Context, c *Collective, a *Args) {
	returned := false
	defer func() {
		if !returned { // it panics: a buffer is no memory
			c.call, c.elem = a.packed(), a.Type.Size()
			c.endBroken(m, recover(), true)
		}
	}()
	c.ctx = ctx
	c.begun = m.g.history.Add(a.packed())
	if err := m.run(c, a); err != nil {
		c.call, c.elem = a.packed(), a.Type.Size()
		c.err = c.fail(m, err)
	}
	returned = true
}

// stampedBytes is the least number of bytes for which a collective that has not waited gets a time stamp at its end.
const stampedBytes = 4 << 10

// run carries out c, whose arguments are a.
func (m *memory) run(c *Collective, a *Args) (err error) {
	record, t := m.g.Comm.Collectives(), m.team
	record.BeginShort(c.seq, c.begun)
	c.beginInMemory(t)
	switch a.Kind {
	case call.KindBarrier:
		err = t.Barrier()
	case call.KindBroadcast:
		err = t.Broadcast(a.Out, a.Root)
	case call.KindScatter:
		err = t.Scatter(a.Out, a.In, a.Root)
	case call.KindGather:
		err = t.Gather(a.Out, a.In, a.Root)
	case call.KindAllGather:
		err = t.AllGather(a.Out, a.In)
	case call.KindAllToAll:
		err = t.AllToAll(a.Out, a.In)
	case call.KindScatterV:
		err = t.ScatterV(a.Out, c.blocks(&c.in), a.Root)
	case call.KindGatherV:
		err = t.GatherV(c.blocks(&c.out), a.In, a.Root)
	case call.KindAllGatherV:
		err = t.AllGatherV(c.blocks(&c.out), a.In)
	case call.KindAllToAllV:
		err = t.AllToAllV(c.blocks(&c.out), c.blocks(&c.in))
	default:
		err = m.reduce(c, a)
	}
	if err == nil {
		record.EndShort(c.seq, t.Sent, t.Received, !t.Waited && t.Sent+t.Received < stampedBytes)
	}
	return err
}

// reduce carries out a reduction: of the elements in the buffers as they are, or of operands made of them.
func (m *memory) reduce(c *Collective, a *Args) (err error) {
	t, asIs := m.team, a.kernel != nil
	red := shm.Reduction{Elem: a.Type.Size(), Kernel: shm.Kernel(a.kernel)}
	if asIs {
		red.Fold = m.g.fold(a.Type, a.Op.Kernel)
	} else {
		c.makeOperandsOf(a)
		red = c.folding()
	}
	switch a.Kind {
	case call.KindReduce:
		err = t.Reduce(a.Out, a.operands(), &red, a.Root)
	case call.KindReduceScatter:
		err = t.ReduceScatter(a.Out, a.In, &red)
	case call.KindReduceScatterV:
		err = t.ReduceScatterV(a.Out, c.blocks(&c.in), &red)
	default:
		err = t.AllReduce(a.Out, a.operands(), &red)
	}
	if !asIs {
		err = c.finish(err)
	}
	return err
}

// makeOperandsOf makes the buffers of a, the arguments of c, those of operands.
func (c *Collective) makeOperandsOf(a *Args) {
	c.makeOperands()
	switch a.Out = c.operands; a.Kind {
	case call.KindReduceScatter:
		a.In = c.operandsOf(a.In, !c.op.Scaled)
	case call.KindReduceScatterV:
		c.makeListed()
	default:
		a.In = nil
	}
}

// blocks returns the blocks of v as a team sees them.
func (c *Collective) blocks(v *pipeline.Vector) shm.Blocks {
	if len(v.Bufs) > 0 {
		return shm.Listed(v.Bufs)
	}
	return shm.Ranged(v.Buf, v.Blocks, c.elem)
}

// beginInMemory begins c with t, a team of this rank.
func (c *Collective) beginInMemory(t *shm.Team) {
	if c.g.running != c { // to compare costs less than to write
		c.g.running = c
	}
	t.Begin(c.seq, shm.Call(c.begun), c.g.history.Digest())
}
