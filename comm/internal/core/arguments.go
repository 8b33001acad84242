package core

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/pipeline"
)

// root makes r the root of the call.
func (c *Collective) root(r int) {
	if !c.g.Has(r) {
		c.refuse(noRank(c.g, r))
	}
	c.call.Root = int32(r)
}

// noRank says that g has no such rank.
func noRank(g *Group, rank int) error {
	return fmt.Errorf("no rank %d in a group of %d", rank, g.Size())
}

// wantBlocks checks that whole, of n elements, holds a block of m for every rank.
func (c *Collective) wantBlocks(whole string, n int, block string, m int) {
	if size := c.g.Size(); n != size*m {
		c.refusef("len(%s) is %d: want Size × len(%s) = %d × %d", whole, n, block, size, m)
	}
}

// wantBufs checks that v has a buffer for every rank, and that this rank's is as long as block, which has n elements of elem bytes.
func (c *Collective) wantBufs(name string, v *pipeline.Vector, block string, n, elem int) {
	if size := c.g.Size(); len(v.Bufs) != size {
		c.refusef("len(%s) is %d: want Size = %d", name, len(v.Bufs), size)
		return
	}
	if c.err != nil {
		return
	}
	if got := len(v.Bufs[c.g.rank]) / elem; got != n {
		c.refusef("len(%s[%d]) is %d: want len(%s) = %d", name, c.g.rank, got, block, n)
	}
}

// wantValues checks that all buffers of v hold whole values of the operation. Elements have elem bytes.
func (c *Collective) wantValues(name string, v *pipeline.Vector, elem int) {
	for i, p := range v.Bufs {
		if w := c.op.Width; w > 1 && len(p)/elem%w != 0 {
			c.refusef("%v: len(%s[%d]) is %d: want a multiple of %d", c.op, name, i, len(p)/elem, w)
		}
	}
}

// wantCounts checks that counts has a number for every rank, and that they add up to n.
func (c *Collective) wantCounts(name string, counts []int, n int) {
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

// lengths returns an FNV-1a hash of the lengths of v's blocks.
func lengths(v *pipeline.Vector) uint32 {
	h := uint64(14695981039346656037)
	for _, b := range v.Blocks {
		h = (h ^ uint64(b.Len())) * 1099511628211
	}
	return uint32(h ^ h>>32)
}
