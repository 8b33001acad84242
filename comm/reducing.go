package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// reducing is a collective that combines elements of type T. What it sends and combines is called its operands: the
// caller's elements, scaled if the operation asks for it, and half floats that are added or multiplied as float32.
type reducing[T Element] struct {
	*collective
	red    reduction
	kernel reduce.Kernel
	typ    reduce.Type // of operands
	wide   bool        // operands are float32 and elements are not
}

func newReducing[T Element](g *Group, kind callKind, op Op, n int) *reducing[T] {
	r := &reducing[T]{collective: newCollective[T](g, kind, n), typ: typeOf[T]()}
	var err error
	if r.red, r.kernel, err = resolve(kind, op, r.typ, n); err != nil {
		r.refuse(err)
		return r
	}
	if r.wide = g.widens(r.typ, r.red); r.wide {
		r.typ, r.elem = reduce.Float32, reduce.Float32.Size()
		r.kernel = reduce.For(reduce.Float32, r.red.kernel)
	}
	r.elem *= r.red.width
	r.call.Reduce, r.call.Detail = r.red.code, r.red.detail()
	return r
}

// widens says whether elements of type t travel as float32, to be rounded once: half floats that are added or multiplied. Those
// of two ranks are rounded once in any case, unless there is more to do than that.
func (g *Group) widens(t reduce.Type, r reduction) bool {
	return (t == reduce.Float16 || t == reduce.BFloat16) && (r.kernel == reduce.Sum || r.kernel == reduce.Prod) &&
		(len(g.ranks) > 2 || r.scaled || r.average)
}

// operands returns the operands in buf: buf itself if they are the same and it may be overwritten, else a copy.
func (r *reducing[T]) operands(buf []T, mayOverwrite bool) []byte {
	var work []byte
	switch {
	case r.wide:
		wide := make([]float32, len(buf))
		reduce.Widen(typeOf[T](), wide, reduce.Bytes(buf))
		work = reduce.Bytes(wide)
	case mayOverwrite:
		work = reduce.Bytes(buf)
	default:
		work = reduce.Bytes(slices.Clone(buf))
	}
	if r.red.scaled {
		reduce.Scale(r.typ, work, r.red.scale)
	}
	return work
}

// result puts into buf the elements that the combined operands in work mean.
func (r *reducing[T]) result(buf []T, work []byte) {
	if r.red.average {
		reduce.Divide(r.typ, work, r.g.Size())
	}
	if r.red.normalize {
		reduce.Normalize(r.typ, work)
	}
	if r.wide {
		reduce.Narrow(typeOf[T](), reduce.Bytes(buf), reduce.View[float32](work))
	}
}

// inPlace lets r run p on buf, in which the result is then left if this rank is to have one.
func (r *reducing[T]) inPlace(p plan.Plan, buf []T, result bool) task {
	work := r.operands(buf, result)
	t := inPlace(p, work)
	t.kernel = r.kernel
	if result {
		t.end = func() { r.result(buf, work) }
	}
	return t
}

// towards lets r run p, which leaves the result in buf of one rank, which this may be. Elsewhere buf stays as it is.
func (r *reducing[T]) towards(p plan.Plan, buf []T, result bool) task {
	if result || r.wide || r.red.scaled {
		return r.inPlace(p, buf, result)
	}
	return r.g.towards(p, reduce.Bytes(buf), r.kernel, false)
}

// asTeam lets r run part on what buf means, in which the result is then left if this rank is to have one.
func (r *reducing[T]) asTeam(buf []T, result bool, part func(t *shm.Team, work []byte, red shm.Reduction) error) task {
	work := r.operands(buf, result || !r.red.scaled) // a team leaves it as it is otherwise
	t := task{team: func(team *shm.Team) error { return part(team, work, r.folding()) }}
	if result {
		t.end = func() { r.result(buf, work) }
	}
	return t
}

func (r *reducing[T]) folding() shm.Reduction {
	return shm.Reduction{Elem: r.elem, Kernel: shm.Kernel(r.kernel), Spoils: r.red.own != nil}
}

// everywhere is the task of leaving the reduction of buf in it on every rank.
func (r *reducing[T]) everywhere(buf []T) task {
	if r.hasTeam() {
		return r.asTeam(buf, true, (*shm.Team).AllReduce)
	}
	if n := r.onNodes(r.red.ordered()); n != nil {
		return r.allReduceOn(n, buf)
	}
	n := len(buf) / r.red.width
	return r.inPlace(r.g.choose.AllReduce(r.g.rank, r.g.Size(), n, r.elem, r.red.ordered()), buf, true)
}

// scattered is the task of leaving in out this rank's block of the reduction of in, which has a block for every rank.
func (r *reducing[T]) scattered(out []T, in [][]T) task {
	src := partsOf(in, r.red.width)
	if r.wide || r.red.scaled {
		for i := range in {
			src.parts[i] = r.operands(in[i], false)
		}
	}
	work := reduce.Bytes(out)
	if r.wide {
		work = reduce.Bytes(make([]float32, len(out)))
	}
	copy(work, src.parts[r.g.rank])
	return task{
		plan: plan.ReduceScatter(r.g.rank, src.blocks, r.red.ordered()),
		src:  src, dst: vector{buf: work, base: src.blocks[r.g.rank].Lo},
		kernel: r.kernel,
		end:    func() { r.result(out, work) },
	}
}

// teamScattered is scattered, of equal blocks end to end, as a team.
func (r *reducing[T]) teamScattered(out, in []T) task {
	result := reduce.Bytes(out)
	if r.wide {
		result = reduce.Bytes(make([]float32, len(out)))
	}
	work := r.operands(in, !r.red.scaled)
	return task{
		team: func(t *shm.Team) error { return t.ReduceScatter(result, work, r.folding()) },
		end:  func() { r.result(out, result) },
	}
}
