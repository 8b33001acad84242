package pattern

func (c collective) allReduce() (list []Way) {
	if c.even {
		list = append(list, c.way("doubling", c.doubling()), c.way("halving", c.halve(), c.doubleBlocks(0)))
	} else {
		list = append(list, c.way("tree", c.reduceTree(), c.broadcastTree()))
	}
	if c.size > 2 {
		list = append(list, c.way("ring", c.reduceRing(), c.gatherRing(0)))
		if c.n <= directLimit {
			list = append(list, c.way("direct", c.exchangeAll()))
		}
	}
	return list
}

// doubling exchanges the whole vector with ever farther ranks. The number of ranks is a power of two.
func (c collective) doubling() (steps []Step) {
	for d := 1; d < c.size; d *= 2 {
		peer := c.rank ^ d
		in := c.whole(Recv, peer)
		in.At = c.n
		steps = append(steps, Step{c.whole(Send, peer), in}, Step{{Kind: Sum, From: c.n, Length: c.n}})
	}
	return steps
}

// exchangeAll sends the whole vector to all other ranks at the same time.
func (c collective) exchangeAll() []Step {
	var all Step
	var sums []Step
	for i, peer := range c.others() {
		in := c.whole(Recv, peer)
		in.At = (i + 1) * c.n
		all = append(all, c.whole(Send, peer), in)
		sums = append(sums, Step{{Kind: Sum, From: in.At, Length: c.n}})
	}
	return append([]Step{all}, sums...)
}

// halve leaves each rank with its part of the sum, in a. The number of ranks is a power of two. Rabenseifner, "Optimization of collective
// reduction operations", 2004.
func (c collective) halve() (steps []Step) {
	low, high := 0, c.size
	for high-low > 1 {
		half := (high - low) / 2
		middle, peer := low+half, c.rank^half
		if c.rank < middle {
			steps = append(steps, Step{c.blocks(Send, peer, 0, middle, high), c.blocks(Add, peer, 0, low, middle)})
			high = middle
		} else {
			steps = append(steps, Step{c.blocks(Send, peer, 0, low, middle), c.blocks(Add, peer, 0, middle, high)})
			low = middle
		}
	}
	return steps
}

// reduceRing leaves each rank with its part of the sum, in a. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
// of workstations", 2009.
func (c collective) reduceRing() (steps []Step) {
	for d := 1; d < c.size; d++ {
		out, in := c.at(-d), c.at(-d-1)
		steps = append(steps, Step{c.blocks(Send, c.at(1), 0, out, out+1), c.blocks(Add, c.at(-1), 0, in, in+1)})
	}
	return steps
}

// reduceDirect leaves each rank with its part of the sum, in a: the others send that at the same time.
func (c collective) reduceDirect() []Step {
	var all Step
	for _, peer := range c.others() {
		all = append(all, c.blocks(Send, peer, 0, peer, peer+1), c.blocks(Add, peer, 0, c.rank, c.rank+1))
	}
	return []Step{all}
}

func (c collective) reduceScatter() (list []Way) {
	take := []Step{{{Kind: Copy, From: c.rank * c.part, At: c.n, Length: c.part}}}
	list = append(list, c.way("direct", c.reduceDirect(), take))
	if c.size > 2 {
		list = append(list, c.way("ring", c.reduceRing(), take))
		if c.even {
			list = append(list, c.way("halving", c.halve(), take))
		}
	}
	return list
}

func (c collective) reduce() (list []Way) {
	list = append(list, c.way("binomial", c.reduceTree()))
	if c.n > chunk {
		list = append(list, c.way("chain", reversed(c.chain())))
	}
	scattered := c.reduceRing()
	if c.even {
		scattered = c.halve()
	}
	var gather Step
	if c.rank > 0 {
		gather = Step{c.blocks(Send, 0, 0, c.rank, c.rank+1)}
	} else {
		for peer := 1; peer < c.size; peer++ {
			gather = append(gather, c.blocks(Recv, peer, 0, peer, peer+1))
		}
	}
	return append(list, c.way("scatter", scattered, []Step{gather}))
}

// reduceTree is broadcastTree backwards.
func (c collective) reduceTree() []Step { return reversed(c.broadcastTree()) }

// reversed returns what sums the vectors that some steps pass on: what was sent is received and added.
func reversed(steps []Step) (list []Step) {
	for i := len(steps) - 1; i >= 0; i-- {
		var s Step
		for _, m := range steps[i] {
			if m.Kind == Send {
				m.Kind = Add
			} else {
				m.Kind = Send
			}
			s = append(s, m)
		}
		list = append(list, s)
	}
	return list
}
