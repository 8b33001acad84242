package comm

import (
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// newCollective is a call of kind on n elements of type T, which is what all ranks agree on.
func newCollective[T Element](g *Group, kind callKind, n int) *collective {
	var e T
	return &collective{
		g:    g,
		call: endpoint.Call{Op: uint8(kind), Type: uint8(typeOf[T]()), Count: uint64(n)},
		elem: int(unsafe.Sizeof(e)),
	}
}

// refuse records what is wrong with the call; the first reason stays.
func (c *collective) refuse(err error) {
	if c.err == nil {
		c.err = c.g.refused(&ArgumentError{Op: callKind(c.call.Op).String(), Err: err})
	}
}

// refused is err, with which this rank does not make a call that the others may make and wait in: they get to know.
func (g *Group) refused(err error) error {
	if err != nil {
		g.lane.Refused(err.Error())
	}
	return err
}

func (c *collective) want(ok bool, format string, args ...any) {
	if !ok {
		c.refuse(fmt.Errorf(format, args...))
	}
}

// root says that the call is about rank r.
func (c *collective) root(r int) {
	c.want(c.g.WorldRank(r) >= 0, "no rank %d in a group of %d", r, c.g.Size())
	c.call.Root = int32(r)
}

// wantBlocks checks that whole holds a block for every rank.
func (c *collective) wantBlocks(whole string, n int, block string, m int) {
	c.want(n == c.g.Size()*m, "len(%s) is %d: want Size × len(%s) = %d × %d", whole, n, block, c.g.Size(), m)
}

// wantParts checks that parts, of the given lengths, has one for every rank, and that this rank's is as long as block.
func (c *collective) wantParts(parts string, lengths []int, block string, n int) {
	if len(lengths) != c.g.Size() {
		c.want(false, "len(%s) is %d: want Size = %d", parts, len(lengths), c.g.Size())
		return
	}
	own := lengths[c.g.rank]
	c.want(own == n, "len(%s[%d]) is %d: want len(%s) = %d", parts, c.g.rank, own, block, n)
}

// wantCounts checks that counts has one for every rank, and that they fill a buffer of n.
func (c *collective) wantCounts(name string, counts []int, n int) {
	c.want(len(counts) == c.g.Size(), "len(%sCounts) is %d: want Size = %d", name, len(counts), c.g.Size())
	left := n
	for r, m := range counts {
		c.want(m >= 0, "%sCounts[%d] is %d", name, r, m)
		c.want(m <= left, "%sCounts add up to more than len(%s) = %d", name, name, n)
		left -= m
	}
	c.want(left == 0, "%sCounts add up to %d: want len(%s) = %d", name, n-left, name, n)
}

// inPlace is the task of running p on buf.
func inPlace(p plan.Plan, buf []byte) task {
	v := vector{buf: buf}
	return task{plan: p, src: v, dst: v}
}

// partsOf is the vector of parts, whose blocks are counted in values of width elements.
func partsOf[T Element](parts [][]T, width int) vector {
	v := vector{parts: make([][]byte, len(parts)), blocks: blocksOf(lengthsOf(parts), width)}
	for i, p := range parts {
		v.parts[i] = reduce.Bytes(p)
	}
	return v
}

func lengthsOf[T any](parts [][]T) []int {
	lengths := make([]int, len(parts))
	for i, p := range parts {
		lengths[i] = len(p)
	}
	return lengths
}

// blocksOf are blocks of the given lengths end to end, counted in values of width elements.
func blocksOf(lengths []int, width int) []plan.Range {
	blocks := make([]plan.Range, len(lengths))
	lo := 0
	for i, n := range lengths {
		blocks[i] = plan.Range{Lo: lo, Hi: lo + n/width}
		lo = blocks[i].Hi
	}
	return blocks
}

func equalBlocks(size, n int) []plan.Range {
	blocks := make([]plan.Range, size)
	for i := range blocks {
		blocks[i] = plan.Range{Lo: i * n, Hi: (i + 1) * n}
	}
	return blocks
}

// cut cuts buf into size parts of equal length.
func cut[T any](buf []T, size int) [][]T {
	n := len(buf) / size
	parts := make([][]T, size)
	for i := range parts {
		parts[i] = buf[i*n : (i+1)*n]
	}
	return parts
}
