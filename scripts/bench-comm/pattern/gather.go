package pattern

func (c collective) broadcast() (list []Way) {
	list = append(list, c.way("binomial", c.broadcastTree()))
	if c.size == 2 {
		return list
	}
	if c.n > chunk {
		list = append(list, c.way("chain", c.chain()))
	}
	var scatter, all Step
	if c.rank > 0 {
		scatter, all = Step{c.blocks(Recv, 0, 0, c.rank, c.rank+1)}, Step{c.whole(Recv, 0)}
	} else {
		for peer := 1; peer < c.size; peer++ {
			scatter, all = append(scatter, c.blocks(Send, peer, 0, peer, peer+1)), append(all, c.whole(Send, peer))
		}
	}
	return append(list, c.way("scatter", []Step{scatter}, c.gatherRing(0)), c.way("direct", []Step{all}))
}

// broadcastTree sends the whole vector of rank 0 down a binomial tree. A rank sends to all its children at the same time, and first to
// the one with the most descendants.
func (c collective) broadcastTree() []Step {
	var in, out Step
	top := 1
	for top < c.size {
		top *= 2
	}
	if c.rank > 0 {
		top = c.rank & -c.rank
		in = Step{c.whole(Recv, c.rank-top)}
	}
	for d := top / 2; d > 0; d /= 2 {
		if c.rank+d < c.size {
			out = append(out, c.whole(Send, c.rank+d))
		}
	}
	return []Step{in, out}
}

// chain passes the vector of rank 0 from rank to rank, in chunks.
func (c collective) chain() (steps []Step) {
	chunks := (c.n + chunk - 1) / chunk
	piece := func(kind Kind, peer, i int) Move {
		return Move{Kind: kind, Peer: peer, At: i * chunk, Length: min(chunk, c.n-i*chunk)}
	}
	for i := range chunks + 1 {
		var s Step
		if c.rank > 0 && i < chunks {
			s = append(s, piece(Recv, c.rank-1, i))
		}
		if c.rank < c.size-1 && i > 0 {
			s = append(s, piece(Send, c.rank+1, i-1))
		}
		steps = append(steps, s)
	}
	return steps
}

// gatherRing passes the parts of all ranks from neighbour to neighbour, in memory that begins at base.
func (c collective) gatherRing(base int) (steps []Step) {
	for d := range c.size - 1 {
		out, in := c.at(-d), c.at(-d-1)
		steps = append(steps, Step{c.blocks(Send, c.at(1), base, out, out+1), c.blocks(Recv, c.at(-1), base, in, in+1)})
	}
	return steps
}

// doubleBlocks exchanges ever more parts with ever farther ranks. The number of ranks is a power of two.
func (c collective) doubleBlocks(base int) (steps []Step) {
	for d := 1; d < c.size; d *= 2 {
		peer, first := c.rank^d, c.rank&^(d-1)
		steps = append(steps, Step{c.blocks(Send, peer, base, first, first+d), c.blocks(Recv, peer, base, first^d, first^d+d)})
	}
	return steps
}

func (c collective) allGather() (list []Way) {
	own := []Step{{{Kind: Copy, At: c.n + c.rank*c.part, Length: c.part}}}
	var all Step
	for _, peer := range c.others() {
		all = append(all, Move{Kind: Send, Peer: peer, Length: c.part}, c.blocks(Recv, peer, c.n, peer, peer+1))
	}
	list = append(list, c.way("direct", []Step{all}, own))
	if c.size > 2 {
		list = append(list, c.way("ring", own, c.gatherRing(c.n)))
		if c.even {
			list = append(list, c.way("doubling", own, c.doubleBlocks(c.n)))
		}
	}
	return list
}
