package hier

// Between nodes, vectors with a block for every rank are in order of nodes: the blocks of one node are one range.

// blocksHere returns the blocks of size bytes of this node's ranks in ordered, which is in order of nodes.
func (l *Layout) blocksHere(ordered []byte, size int) []byte {
	before := 0
	for _, members := range l.Members[:l.Node] {
		before += len(members)
	}
	return ordered[before*size:][:len(l.Here())*size]
}

// inNodeOrder returns memory for the blocks of buf in order of nodes: buf itself if that is the order of ranks.
func (c *Call) inNodeOrder(l *Layout, buf []byte) []byte {
	if l.InOrder() {
		return buf
	}
	return c.Scratch.Take(len(buf))
}

// inRankOrder copies blocks of size bytes from ordered, where they are in order of nodes, to buf.
func (l *Layout) inRankOrder(buf, ordered []byte, size int) {
	if !l.InOrder() {
		unpack(buf, l.Order(), size, ordered)
	}
}

// pick returns a copy of the blocks of size bytes of buf that belong to ranks, one after the other.
func (c *Call) pick(buf []byte, ranks []int, size int) []byte {
	packed := c.Scratch.Take(len(ranks) * size)
	pack(packed, buf, ranks, size)
	return packed
}

// pack copies the blocks of size bytes of buf that belong to ranks to dst, one after the other, and returns how many bytes they are.
func pack(dst, buf []byte, ranks []int, size int) int {
	for i, r := range ranks {
		copy(dst[i*size:], buf[r*size:(r+1)*size])
	}
	return len(ranks) * size
}

// unpack copies the blocks in packed to where the blocks of ranks are in buf. It is the inverse of pack.
func unpack(buf []byte, ranks []int, size int, packed []byte) {
	for i, r := range ranks {
		copy(buf[r*size:(r+1)*size], packed[i*size:])
	}
}
