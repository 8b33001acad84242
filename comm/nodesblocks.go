package comm

// Vectors with a block for every rank, which are in order of nodes between nodes: the blocks of one are one range.

// blockOf is the blocks of size bytes of this node's ranks in room, which is in order of nodes.
func (n *nodes) blockOf(room []byte, size int) []byte {
	before := 0
	for _, members := range n.Members[:n.Node] {
		before += len(members)
	}
	return room[before*size:][:len(n.Here())*size]
}

// arranged is buf, which has blocks of size bytes in order of rank, in order of nodes: buf itself if that is the same.
func (c *collective) arranged(n *nodes, buf []byte, size int) []byte {
	if n.InOrder() {
		return buf
	}
	return c.picked(buf, n.Order(), size)
}

// roomOn is where blocks in order of nodes are to lie that end up in buf in order of rank, by way of settle.
func (c *collective) roomOn(n *nodes, buf []byte) []byte {
	if n.InOrder() {
		return buf
	}
	return c.g.memory(len(buf))
}

// settle brings blocks of size bytes from room to buf.
func (n *nodes) settle(buf, room []byte, size int) {
	if !n.InOrder() {
		put(buf, n.Order(), size, room)
	}
}

// picked is a copy of the blocks of size bytes of buf that belong to ranks, end to end.
func (c *collective) picked(buf []byte, ranks []int, size int) []byte {
	picked := c.g.memory(len(ranks) * size)
	pick(picked, buf, ranks, size)
	return picked
}

// pick copies the blocks of size bytes of buf that belong to ranks to dst, end to end, and returns how many bytes they are.
func pick(dst, buf []byte, ranks []int, size int) int {
	for i, r := range ranks {
		copy(dst[i*size:], buf[r*size:(r+1)*size])
	}
	return len(ranks) * size
}

// put copies blocks of size bytes, end to end in picked, to where those of ranks are in buf.
func put(buf []byte, ranks []int, size int, picked []byte) {
	for i, r := range ranks {
		copy(buf[r*size:(r+1)*size], picked[i*size:])
	}
}
