package shm

import "github.com/gorun/gorun/comm/internal/plan"

// Blocks are the blocks of all ranks: equal parts of a buffer, ranges of it, or buffers of their own. (They are no function of the rank,
// because that would have to be allocated.)
type Blocks struct {
	buf    []byte
	size   int          // of equal blocks
	ranges []plan.Range // of others, in values of size bytes
	bufs   [][]byte
	longer int // than so many bytes: others count as empty
	only   int // the rank whose block is buf, while others have none, plus one
}

// Ranged are ranges of buf, in values of elem bytes.
func Ranged(buf []byte, ranges []plan.Range, elem int) Blocks {
	return Blocks{buf: buf, ranges: ranges, size: elem}
}

// Slices are the slices of buf, in bytes, and this rank's one.
func (t *Team) Slices(buf []byte, slices []plan.Range) (all Blocks, mine []byte) {
	all = Ranged(buf, slices, 1)
	return all, all.of(t.me)
}

// Listed are buffers of their own.
func Listed(bufs [][]byte) Blocks { return Blocks{bufs: bufs} }

// only is a block of one rank.
func only(rank int, block []byte) Blocks { return Blocks{buf: block, only: rank + 1} }

// equal are blocks of so many bytes each.
func equal(buf []byte, each int) Blocks { return Blocks{buf: buf, size: each} }

// of is the block of rank r.
func (b *Blocks) of(r int) (block []byte) {
	switch {
	case b.bufs != nil:
		block = b.bufs[r]
	case b.ranges != nil:
		block = b.buf[b.ranges[r].Lo*b.size : b.ranges[r].Hi*b.size]
	case b.only == 0:
		return b.buf[r*b.size:][:b.size:b.size]
	case b.only == r+1:
		block = b.buf
	}
	if len(block) <= b.longer {
		return nil
	}
	return block
}

// longerThan are those of more than n bytes.
func (b Blocks) longerThan(n int) Blocks {
	b.longer = n
	return b
}

// lengths returns the bytes of the longest one of n blocks, and of all.
func (b *Blocks) lengths(n int) (longest, whole int) {
	for r := range n {
		size := len(b.of(r))
		longest, whole = max(longest, size), whole+size
	}
	return longest, whole
}
