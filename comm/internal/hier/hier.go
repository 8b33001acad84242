// Package hier carries out collectives of groups that are on several machines, in stages: the ranks of every machine
// work together in memory that they share, and some ranks of every machine exchange the results by messages. (NCCL and
// Open MPI call such algorithms hierarchical.)
//
// No machine gets the same byte twice. In each stage one rank combines an element and the others copy it, so all ranks
// get the same bits.
//
// plan.Nodes says what nodes, rails and slices are. The comments on the calls below give costs: what a node sends to
// others, for N nodes and S bytes.
package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// A Layout is where the members of a group are.
type Layout struct {
	plan.Nodes
	Planner plan.Planner // chooses how many rails there are, one or as many as the smallest node has ranks, and the algorithm on each
	Team    *shm.Team    // of the ranks of this node; nil if this is the only one

	LeastPiece, MostPiece int // how many bytes a rank sends to another node in one piece; the same on all ranks

	exchanger *exchanger // of the last call
}

// A Call is a collective that a group carries out in stages. If a stage fails, those after it do nothing.
type Call struct {
	*Layout
	Rank, Size int // of the group
	RootRank   int // of a call that has a root
	Out, In    []byte
	Route      *Route            // of such calls; nil: the call makes it
	Scratch    *pipeline.Scratch // memory until the call ends
	Overlaps   bool              // the stage by messages may run in another goroutine than those in memory

	pipeline.Call                    // of the stage by messages
	Pipeline      *pipeline.Pipeline // carries that out

	err error // of the stage that has failed

	// Of a call that reduces:
	Operands []byte // what is combined, and the result
	Kernel   reduce.Kernel
	Fold     shm.Reduction // the same as Kernel, for ranks that share memory
	Ordered  bool          // operands are combined in order of rank
}

// inMemory is the stage of the ranks of this node in memory, if there are several.
func (c *Call) inMemory(r *Route, stage func(t *shm.Team) error) {
	if r.Team != nil && c.err == nil {
		c.err = stage(r.Team)
		r.Team.Next()
	}
}

// onRail carries out t, the stage between nodes of a call that is one piece, if this rank is on a rail. t has no plan
// yet.
func (c *Call) onRail(r *Route, t pipeline.Task) {
	if p := r.pieces[0].plan; len(p) > 0 && c.err == nil {
		t.Plan = p
		c.err = c.Pipeline.Run(c.Call, &t)
	}
}

// reduceSlices is the stage that combines a piece of in of the ranks of this node, and leaves this rank's slices of the
// result in work. If there is one rail, in and work are the same memory, because the leader combines in place.
func (c *Call) reduceSlices(r *Route, p *piece, work, in []byte) {
	c.inMemory(r, func(t *shm.Team) error {
		if r.rails == 1 {
			slice := p.sliceOf(work, r.Leader())
			return t.Reduce(slice, slice, &c.Fold, r.Leader())
		}
		for _, s := range p.slices {
			_, out := t.Slices(work, s)
			if err := t.ReduceScatterV(out, shm.Ranged(in, s, 1), &c.Fold); err != nil {
				return err
			}
			t.Next()
		}
		return nil
	})
}

// allGatherSlices is the stage in which the ranks of this node copy each other's slices of a piece of work.
func (c *Call) allGatherSlices(r *Route, p *piece, work []byte) {
	c.inMemory(r, func(t *shm.Team) error {
		if r.rails == 1 {
			return t.Broadcast(p.sliceOf(work, r.Leader()), r.Leader())
		}
		for _, s := range p.slices {
			if err := t.AllGatherV(t.Slices(work, s)); err != nil {
				return err
			}
			t.Next()
		}
		return nil
	})
}
