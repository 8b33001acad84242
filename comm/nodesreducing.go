package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// allReduceOn is the task of leaving the reduction of buf in it on every rank: in memory the ranks of a node combine what
// they have, each on a rail its slice; rails combine the slices of all nodes; and in memory the ranks of a node take the
// slices of each other. 2S(N-1)/N bytes, the least possible, or S log2 N if they are few.
func (r *reducing[T]) allReduceOn(n *nodes, buf []T) task {
	work := r.operands(buf, true)
	v := n.railed(work, r.elem, plan.Range{Hi: len(work) / r.elem})
	own := v.mine[0]
	return task{
		stages: slices.Concat(
			n.inMemory(func(t *shm.Team) error { return v.combine(t, r.folding()) }),
			n.onRail(v.rails, func() task {
				return r.combining(r.g.choose.AllReduce(n.Node, n.size(), own.Len(), r.elem, r.red.ordered()), v.parts[0][n.Place])
			}),
			n.inMemory(v.share),
		),
		end: func() { r.result(buf, work) },
	}
}

// reduceOn is the task of leaving the reduction of buf in it on rank root: as allReduceOn, but slices go to the rails of
// root's node, and from there to root in memory. S bytes at most, which root's node gets ceil(log2 N) times.
func (r *reducing[T]) reduceOn(n *nodes, buf []T, root int) task {
	n = n.led(root)
	work := r.operands(buf, r.g.rank == root)
	v := n.railed(work, r.elem, plan.Range{Hi: len(work) / r.elem})
	own := v.mine[0]
	t := task{stages: slices.Concat(
		n.inMemory(func(t *shm.Team) error { return v.combine(t, r.folding()) }),
		n.onRail(v.rails, func() task {
			return r.combining(r.g.choose.Reduce(n.Node, n.size(), own.Len(), r.elem, n.Of(root), r.red.ordered()), v.parts[0][n.Place])
		}),
	)}
	if n.Node == n.Of(root) && v.rails > 1 { // else root is the rail
		t.stages = append(t.stages, n.inMemory(func(t *shm.Team) error { return t.GatherParts(v.parts[0], n.Leader()) })...)
	}
	if r.g.rank == root {
		t.end = func() { r.result(buf, work) }
	}
	return t
}

// reduceScatterOn is the task of leaving in out this rank's block of the reduction of in: in memory the ranks of a node combine
// what they have for every node, a slice on each rail; rails bring slices to the nodes whose they are; and there ranks take
// their blocks in memory, unless slices are just that. S(N-1)/N bytes for nodes of one size, and the least possible for any.
func (r *reducing[T]) reduceScatterOn(n *nodes, out, in []T) task {
	operands := r.operands(in, !r.red.scaled) // not overwritten
	size := len(operands) / r.g.Size()
	work := pick(operands, n.Order(), size)
	blocks := n.Blocks(size / r.elem)
	v := n.railed(work, r.elem, blocks...)
	t := task{stages: slices.Concat(
		n.inMemory(func(t *shm.Team) error { return v.combine(t, r.folding()) }),
		n.onRail(v.rails, func() task { return r.combining(plan.ReduceScatter(n.Node, v.mine, r.red.ordered()), work) }),
	)}
	if _, most := n.Sizes(); v.rails < most {
		t.stages = append(t.stages, n.inMemory(func(t *shm.Team) error { return t.ShareParts(v.parts[n.Node]) })...)
	}
	t.end = func() {
		own := n.blockOf(work, size)[n.Place*size:][:size]
		if !r.wide {
			copy(reduce.Bytes(out), own)
			own = reduce.Bytes(out)
		}
		r.result(out, own)
	}
	return t
}

// combining is the task of p, which combines operands of buf.
func (r *reducing[T]) combining(p plan.Plan, buf []byte) task {
	t := inPlace(p, buf)
	t.kernel = r.kernel
	return t
}
