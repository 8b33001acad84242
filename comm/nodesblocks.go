package comm

// Vectors with a block for every rank, which are in order of nodes between nodes: the blocks of one are one range.

// blockOf is the blocks of size bytes of this node's ranks in room, which is in order of nodes.
func (n *nodes) blockOf(room []byte, size int) []byte {
	b := n.Blocks(size)[n.Node]
	return room[b.Lo:b.Hi]
}

// arranged is buf, which has blocks of size bytes in order of rank, in order of nodes: buf itself if that is the same.
func (n *nodes) arranged(buf []byte, size int) []byte {
	if n.InOrder() {
		return buf
	}
	return pick(buf, n.Order(), size)
}

// room is where blocks in order of nodes are to lie that end up in buf in order of rank, by way of settle.
func (n *nodes) room(buf []byte) []byte {
	if n.InOrder() {
		return buf
	}
	return make([]byte, len(buf))
}

// settle brings blocks of size bytes from room to buf.
func (n *nodes) settle(buf, room []byte, size int) {
	if !n.InOrder() {
		put(buf, n.Order(), size, room)
	}
}

// pick is a copy of the blocks of size bytes of buf that belong to ranks, end to end.
func pick(buf []byte, ranks []int, size int) []byte {
	picked := make([]byte, 0, len(ranks)*size)
	for _, r := range ranks {
		picked = append(picked, buf[r*size:(r+1)*size]...)
	}
	return picked
}

// put copies blocks of size bytes, end to end in picked, to where those of ranks are in buf.
func put(buf []byte, ranks []int, size int, picked []byte) {
	for i, r := range ranks {
		copy(buf[r*size:(r+1)*size], picked[i*size:])
	}
}
