package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// root says that the call is about rank r.
func (c *collective) root(r int) {
	if !c.g.has(r) {
		c.refusef("no rank %d in a group of %d", r, c.g.Size())
	}
	c.call.Root = int32(r)
}

// wantBlocks checks that whole holds a block for every rank.
func (c *collective) wantBlocks(whole string, n int, block string, m int) {
	if size := c.g.Size(); n != size*m {
		c.refusef("len(%s) is %d: want Size × len(%s) = %d × %d", whole, n, block, size, m)
	}
}

// wantParts checks that parts has one for every rank, and that this rank's is as long as block.
func wantParts[T any](c *collective, name string, parts [][]T, block string, n int) {
	if size := c.g.Size(); len(parts) != size {
		c.refusef("len(%s) is %d: want Size = %d", name, len(parts), size)
	} else if c.err == nil && len(parts[c.g.rank]) != n {
		c.refusef("len(%s[%d]) is %d: want len(%s) = %d", name, c.g.rank, len(parts[c.g.rank]), block, n)
	}
}

// wantValues checks that all of parts are whole values of op.
func wantValues[T any](c *collective, name string, op Op, parts [][]T) {
	for i, p := range parts {
		if w := c.red.width; w > 1 && len(p)%w != 0 {
			c.refusef("%v: len(%s[%d]) is %d: want a multiple of %d", op, name, i, len(p), w)
		}
	}
}

// wantCounts checks that counts has one for every rank, and that they fill a buffer of n.
func (c *collective) wantCounts(name string, counts []int, n int) {
	if size := c.g.Size(); len(counts) != size {
		c.refusef("len(%sCounts) is %d: want Size = %d", name, len(counts), size)
	}
	left := n
	for r, m := range counts {
		if m < 0 {
			c.refusef("%sCounts[%d] is %d", name, r, m)
		}
		if m > left {
			c.refusef("%sCounts add up to more than len(%s) = %d", name, name, n)
		}
		left -= m
	}
	if left != 0 {
		c.refusef("%sCounts add up to %d: want len(%s) = %d", name, n-left, name, n)
	}
}

// inPlace is the task of running p on buf.
func inPlace(p plan.Plan, buf []byte) task {
	v := vector{buf: buf}
	return task{plan: p, src: v, dst: v}
}

// setParts makes v parts, whose blocks are counted in values of width elements.
func setParts[T any](v *vector, parts [][]T, width int) {
	for _, p := range parts {
		v.parts = append(v.parts, reduce.Bytes(p))
		v.append(len(p) / width)
	}
}

// partsOf is the vector of parts.
func partsOf(parts [][]byte) (v vector) {
	setParts(&v, parts, 1)
	return v
}

// setBlocks makes v blocks of the given lengths in buf, end to end.
func (v *vector) setBlocks(buf []byte, lengths ...int) {
	v.buf = buf
	for _, n := range lengths {
		v.append(n)
	}
}

// append adds a block of n to those that v has, at their end.
func (v *vector) append(n int) {
	lo := 0
	if last := len(v.blocks) - 1; last >= 0 {
		lo = v.blocks[last].Hi
	}
	v.blocks = append(v.blocks, plan.Range{Lo: lo, Hi: lo + n})
}

func equalBlocks(size, n int) []plan.Range {
	blocks := make([]plan.Range, size)
	for i := range blocks {
		blocks[i] = plan.Range{Lo: i * n, Hi: (i + 1) * n}
	}
	return blocks
}

// checksum is a hash of the lengths of v's blocks, as FNV-1a makes them.
func (v *vector) checksum() uint32 {
	h := uint64(14695981039346656037)
	for _, b := range v.blocks {
		h = (h ^ uint64(b.Len())) * 1099511628211
	}
	return uint32(h ^ h>>32)
}
