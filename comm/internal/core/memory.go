package core

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/shm"
)

// local is what backends have of the members on this machine.
type local struct {
	g    *Group
	team *shm.Team // nil: there is only this one
}

// Interrupt implements Backend.
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

// Moves implements Backend.
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

// Takes implements Backend.
func (m *memory) Takes(c *Collective) bool { return c.kind().UsesMemory() && m.team.Fits(c.elem) }

// Run implements Backend.
func (m *memory) Run(c *Collective) error {
	c.widen(true)
	a := Args{Kind: c.kind(), Root: c.root(), Out: c.out.Buf, In: c.in.Buf, Op: c.op}
	return m.run(c, &a)
}

// takesAsIs reports whether runAsIs carries out a call with arguments a: a team reads and writes its buffers as they are.
func (m *memory) takesAsIs(a *Args) bool {
	return a.Kind.UsesMemory() && m.team.Fits(a.Type.Size()) && (a.Op == nil || a.Op.IsPlain())
}

// runAsIs carries out c, a blocking call whose turn has come. It does not set all of c first, because that would take a
// noticeable part of the time of a short call. It runs no code of the caller's.
func (m *memory) runAsIs(ctx context.Context, c *Collective, a *Args) {
	c.ctx = ctx
	c.begun = m.g.history.Add(a.packed())
	if err := m.run(c, a); err != nil {
		c.call, c.elem = c.begun.Agreed(), a.Type.Size()
		c.err = c.fail(m, err)
	}
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
	default:
		err = m.reduce(c, a)
	}
	if err == nil {
		record.EndShort(c.seq, t.Sent, t.Received, !t.Waited && t.Sent+t.Received < stampedBytes)
	}
	return err
}

// reduce carries out a reduction.
func (m *memory) reduce(c *Collective, a *Args) error {
	t, root := m.team, a.Root
	switch {
	case a.kernel != nil && a.Kind == call.KindAllReduce:
		return t.AllReduce(a.Out, a.operands(), m.plain(a))
	case a.kernel != nil && a.Kind == call.KindReduce:
		return t.Reduce(a.Out, a.operands(), m.plain(a), root)
	case a.kernel != nil:
		return t.ReduceScatter(a.Out, a.In, m.plain(a))
	case a.Kind == call.KindReduceScatter:
		c.setResult(a.Out)
		return c.finish(true, t.ReduceScatter(c.operands, c.operandsOf(a.In, !c.op.Scaled), c.folding()))
	case a.Kind == call.KindReduce:
		result := m.g.rank == root
		c.setOperands(a.Out, result || !c.op.Scaled) // a team does not change out of other ranks
		return c.finish(result, t.Reduce(c.operands, c.operands, c.folding(), root))
	case a.Kind == call.KindAllReduceCoalesced:
		c.joinBuffers()
		return c.splitBuffers(t.AllReduce(c.operands, c.operands, c.folding()))
	default: // AllReduce
		c.setOperands(a.Out, true)
		return c.finish(true, t.AllReduce(c.operands, c.operands, c.folding()))
	}
}

// plain returns how a team combines the elements themselves.
func (m *memory) plain(a *Args) shm.Reduction {
	return shm.Reduction{Elem: a.Type.Size(), Kernel: shm.Kernel(a.kernel), Fold: m.g.fold(a.Type, a.Op.Kernel)}
}

// beginInMemory begins c with t, a team of this rank.
func (c *Collective) beginInMemory(t *shm.Team) {
	if c.g.running != c { // to compare costs less than to write
		c.g.running = c
	}
	t.Begin(c.seq, shm.Call(c.begun), c.g.history.Digest())
}
