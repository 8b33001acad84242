package hier

// Vectors with a block for every rank travel between nodes in order of nodes: the blocks of one node are one range.

// blocksHere are the blocks of size bytes of this node's ranks in room, which is in order of nodes.
func (l *Layout) blocksHere(room []byte, size int) []byte {
	before := 0
	for _, members := range l.Members[:l.Node] {
		before += len(members)
	}
	return room[before*size:][:len(l.Here())*size]
}

// roomFor is where blocks lie in order of nodes that inRankOrder brings to buf: buf itself if the orders are the same.
func (c *Call) roomFor(l *Layout, buf []byte) []byte {
	if l.InOrder() {
		return buf
	}
	return c.Stages.Memory(len(buf))
}

// inRankOrder brings blocks of size bytes from room, where they are in order of nodes, to buf.
func (l *Layout) inRankOrder(buf, room []byte, size int) {
	if !l.InOrder() {
		unpack(buf, l.Order(), size, room)
	}
}

// pick is a copy of the blocks of size bytes of buf that belong to ranks, end to end.
func (c *Call) pick(buf []byte, ranks []int, size int) []byte {
	packed := c.Stages.Memory(len(ranks) * size)
	pack(packed, buf, ranks, size)
	return packed
}

// pack copies the blocks of size bytes of buf that belong to ranks to dst, end to end, and returns how many bytes they are.
func pack(dst, buf []byte, ranks []int, size int) int {
	for i, r := range ranks {
		copy(dst[i*size:], buf[r*size:(r+1)*size])
	}
	return len(ranks) * size
}

// unpack copies blocks of size bytes, end to end in packed, to where those of ranks are in buf.
func unpack(buf []byte, ranks []int, size int, packed []byte) {
	for i, r := range ranks {
		copy(buf[r*size:(r+1)*size], packed[i*size:])
	}
}
