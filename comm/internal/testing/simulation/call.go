package simulation

import (
	"context"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Kinds are those of the calls that a simulation makes.
var Kinds = []call.Kind{
	call.KindAllReduce, call.KindReduce, call.KindReduceScatter, call.KindReduceScatterV, call.KindScan, call.KindExScan,
	call.KindBroadcast, call.KindAllGather, call.KindAllGatherV, call.KindGather, call.KindGatherV, call.KindScatter,
	call.KindScatterV, call.KindAllToAll, call.KindAllToAllV, call.KindBarrier, call.KindAllReduceCoalesced,
}

// A Call is a collective of uint64, with inputs that follow from its numbers.
type Call struct {
	Kind    call.Kind
	Root    int
	Count   int  // values of one member, or for one
	Ordered bool // a reduction composes functions, which do not commute; otherwise it adds
	InPlace bool // the input is a part of the output, or the output of the input
	Salt    int  // calls with other ones have other inputs
}

func (c Call) String() string {
	text := fmt.Sprintf("%v of %d", c.Kind, c.Count)
	if c.Kind.HasRoot() {
		text += fmt.Sprint(", root ", c.Root)
	}
	if c.Ordered {
		text += ", in order"
	}
	if c.InPlace {
		text += ", in place"
	}
	return text
}

// Reduces reports whether c combines values.
func (c Call) Reduces() bool {
	switch c.Kind {
	case call.KindAllReduce, call.KindReduce, call.KindReduceScatter, call.KindReduceScatterV, call.KindScan, call.KindExScan,
		call.KindAllReduceCoalesced:
		return true
	default:
		return false
	}
}

// compose combines functions x -> ax+b, each of two elements: first the left one is applied, and then the right one. It
// spoils the right one, which it must not, and which harms nobody.
var compose = call.NewOwn("compose", reduce.Uint64, 2, false, reduce.Custom(func(acc, in []uint64) {
	composeInto(acc, acc, in)
	for i := range in {
		in[i] = guard
	}
}))

// careless adds, and spoils its second operand as well.
var careless = call.NewOwn("careless sum", reduce.Uint64, 1, true, reduce.Custom(func(acc, in []uint64) {
	for i := range acc {
		acc[i] += in[i]
		in[i] = guard
	}
}))

func composeInto(dst, a, b []uint64) {
	for i := 0; i < len(dst); i += 2 {
		dst[i], dst[i+1] = a[i]*b[i], b[i]*a[i+1]+b[i+1]
	}
}

func (c Call) op() *call.Reduction {
	switch {
	case !c.Reduces():
		return nil
	case c.Ordered:
		return compose
	case c.Salt%2 == 1:
		return careless
	}
	return &call.Basic[reduce.Sum]
}

// width is the elements of a value.
func (c Call) width() int {
	if c.Ordered && c.Reduces() {
		return 2
	}
	return 1
}

// input returns n elements of what rank has, from element i on.
func (c Call) input(rank, i, n int) []uint64 {
	v := make([]uint64, n)
	for k := range v {
		x := uint64(c.Salt)<<40 + uint64(rank+1)<<24 + uint64(i+k) // Steele, Lea and Flood's SplitMix64
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		v[k] = x ^ x>>27
	}
	return v
}

// combined returns what becomes of n elements of the members from lo on and before hi, from element i on.
func (c Call) combined(lo, hi, i, n int) []uint64 {
	v := c.input(lo, i, n)
	for r := lo + 1; r < hi; r++ {
		next := c.input(r, i, n)
		if c.Ordered {
			composeInto(v, v, next)
			continue
		}
		for k := range v {
			v[k] += next[k]
		}
	}
	return v
}

// uneven is the elements of member r's block where blocks differ: of some there are none.
func (c Call) uneven(r int) int { return c.width() * ((c.Count + r) * ((r + c.Salt) % 3) / 2) }

// between is the elements that one member has for another in an AllToAllV.
func (c Call) between(from, to int) int { return c.Count * ((from + 2*to + c.Salt) % 3) / 2 }

// A Part is what one member passes to a call.
type Part struct {
	Args   core.Args
	Blocks *core.Blocks

	text    string
	buffers []buffer
	kept    [][]uint64 // what keeps the slices of Blocks alive
}

// A buffer is memory of a member, and what must be in it in the end.
type buffer struct {
	name      string
	has, want []uint64
}

// guard is what stands before and behind each buffer.
const guard = 0xdeadbeefdeadbeef

// buffer returns memory that has v at first, and must have want in the end.
func (p *Part) buffer(name string, v, want []uint64) []uint64 {
	all := slices.Concat([]uint64{guard}, v, []uint64{guard})
	p.buffers = append(p.buffers, buffer{name, all, slices.Concat([]uint64{guard}, want, []uint64{guard})})
	return all[1 : 1+len(v) : 1+len(v)]
}

// out returns memory for a result.
func (p *Part) out(want []uint64) []uint64 {
	return p.buffer("out", slices.Repeat([]uint64{guard}, len(want)), want)
}

// in returns memory that does not change.
func (p *Part) in(v []uint64) []uint64 { return p.buffer("in", v, v) }

// Of returns the part of rank in a group of size.
func (c Call) Of(rank, size int) *Part {
	n := c.Count * c.width()
	p := &Part{text: fmt.Sprintf("%v: member %d of %d", c, rank, size)}
	p.Args = core.Args{Kind: c.Kind, Type: reduce.Uint64, Count: n, Root: c.Root, Op: c.op()}
	atRoot := rank == c.Root
	own := c.input(rank, 0, n)
	var out, in []uint64
	switch c.Kind {
	case call.KindAllReduce:
		out, in = p.reduction(c, own, c.combined(0, size, 0, n))
	case call.KindScan:
		out, in = p.reduction(c, own, c.combined(0, rank+1, 0, n))
	case call.KindReduce:
		var result []uint64
		if atRoot {
			result = c.combined(0, size, 0, n)
		}
		out, in = p.reduction(c, own, result)
	case call.KindExScan:
		var result []uint64
		if rank > 0 {
			result = c.combined(0, rank, 0, n)
		}
		out, in = p.reduction(c, own, result)
	case call.KindBroadcast:
		out = p.buffer("buf", own, c.input(c.Root, 0, n))
	case call.KindReduceScatter:
		whole, result := c.input(rank, 0, size*n), c.combined(0, size, rank*n, n)
		if c.InPlace {
			in = p.buffer("in", whole, slices.Concat(whole[:rank*n], result, whole[(rank+1)*n:]))
			out = in[rank*n:][:n]
			break
		}
		in, out = p.in(whole), p.out(result)
	case call.KindAllGather, call.KindGather:
		all := c.blocks(size, func(r int) []uint64 { return c.input(r, 0, n) })
		switch {
		case c.Kind == call.KindGather && !atRoot:
			in = p.in(own)
		case c.InPlace:
			first := slices.Repeat([]uint64{guard}, len(all))
			copy(first[rank*n:], own)
			out = p.buffer("out", first, all)
			in = out[rank*n:][:n]
		default:
			in, out = p.in(own), p.out(all)
		}
	case call.KindScatter:
		if atRoot {
			in = p.in(c.input(rank, 0, size*n))
		}
		if atRoot && c.InPlace {
			out = in[rank*n:][:n]
			break
		}
		out = p.out(c.input(c.Root, rank*n, n))
	case call.KindAllToAll:
		p.Args.Count = size * n
		in = p.in(c.input(rank, 0, size*n))
		out = p.out(c.blocks(size, func(r int) []uint64 { return c.input(r, rank*n, n) }))
	case call.KindBarrier:
		p.Args.Type, p.Args.Count = 0, 0
	default:
		out, in = p.unequal(c, rank, size)
	}
	p.Args.Out, p.Args.In = reduce.Bytes(out), reduce.Bytes(in)
	return p
}

// reduction returns the memory of a reduction with this result; nil: the member gets none.
func (p *Part) reduction(c Call, own, result []uint64) (out, in []uint64) {
	p.Args.Apart = !c.InPlace
	switch {
	case !c.InPlace && result == nil:
		return nil, p.in(own)
	case !c.InPlace:
		return p.out(result), p.in(own)
	case result == nil:
		return p.in(own), nil
	}
	return p.buffer("buf", own, result), nil
}

// blocks returns what of returns for every member, one after the other.
func (Call) blocks(size int, of func(r int) []uint64) (all []uint64) {
	for r := range size {
		all = append(all, of(r)...)
	}
	return all
}

// unequal sets the part of a call whose blocks have different lengths.
func (p *Part) unequal(c Call, rank, size int) (out, in []uint64) {
	p.Blocks = new(core.Blocks)
	mine := c.uneven(rank)
	p.Args.Count = mine
	own := c.input(rank, 0, mine)
	switch c.Kind {
	case call.KindAllGatherV, call.KindGatherV:
		in = p.in(own)
		if c.Kind == call.KindGatherV && rank != c.Root {
			break
		}
		for r := range size {
			block := in
			if r != rank || !c.InPlace {
				block = p.out(c.input(r, 0, c.uneven(r)))
			}
			p.kept = append(p.kept, block)
		}
		p.Blocks.Outs = reduce.BuffersOf(p.kept)
	case call.KindScatterV, call.KindReduceScatterV:
		at := 0
		for r := range size {
			n := c.uneven(r)
			switch {
			case c.Kind == call.KindReduceScatterV:
				p.kept = append(p.kept, p.in(c.input(rank, at, n)))
			case rank == c.Root:
				p.kept = append(p.kept, p.in(c.input(c.Root, at, n)))
			}
			if r == rank && c.Kind == call.KindReduceScatterV {
				out = p.out(c.combined(0, size, at, n))
			} else if r == rank {
				out = p.out(c.input(c.Root, at, n))
			}
			at += n
		}
		p.Blocks.Ins = reduce.BuffersOf(p.kept)
	case call.KindAllToAllV:
		var sent, got []uint64
		for r := range size {
			to, from := c.between(rank, r), c.between(r, rank)
			p.Blocks.InCounts, p.Blocks.OutCounts = append(p.Blocks.InCounts, to), append(p.Blocks.OutCounts, from)
			sent = append(sent, c.input(rank, 1000*r, to)...)
			got = append(got, c.input(r, 1000*rank, from)...)
		}
		in, out = p.in(sent), p.out(got)
		p.Args.Count = len(in)
	default: // AllReduceCoalesced
		p.Args.Count = 0
		for i, n := range []int{c.Count, 0, 1, c.Count / 2} {
			n *= c.width()
			p.Args.Count += n
			p.kept = append(p.kept, p.buffer(fmt.Sprint("buffer ", i), c.input(rank, 1000*i, n), c.combined(0, size, 1000*i, n)))
		}
		p.Blocks.Outs = reduce.BuffersOf(p.kept)
	}
	return out, in
}

// Check returns an error if the call has left anything else than it must.
func (p *Part) Check() error {
	for _, b := range p.buffers {
		for i, x := range b.has {
			if x != b.want[i] {
				return fmt.Errorf("%s: %s[%d] of %d is %#x, want %#x", p.text, b.name, i-1, len(b.has)-2, x, b.want[i])
			}
		}
	}
	return nil
}

// Do makes the call on g, and checks what it leaves.
func (c Call) Do(g *core.Group) error { return Program{c}.Run(context.Background(), g) }
