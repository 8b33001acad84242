package plan

// ChainBroadcast passes the vector of root from neighbour to neighbour, in so many messages. A rank passes one on while
// it receives the next one. It is for long vectors.
//
// Known as the pipeline, for example from Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for
// large, irregular all-gather problems", 2010. The last of k messages arrives after k+P-2 times the time of one. At
// most n elements sent, the least possible.
func ChainBroadcast(rank, size, n, root, messages int) Plan {
	all := Range{0, n}
	var p Plan
	me := mod(rank-root, size) // the chain is numbered from its root
	first, last := me == 0, me == size-1
	for i := range messages + 1 {
		s := Step{To: None, From: None}
		if !first && i < messages {
			s.From, s.Recv = mod(rank-1, size), all.Part(messages, i)
		}
		if !last && i > 0 {
			s.To, s.Send = mod(rank+1, size), all.Part(messages, i-1)
		}
		if s.To != None || s.From != None {
			p = append(p, s)
		}
	}
	return p
}

// ChainReduce combines the vectors of all ranks from neighbour to neighbour towards root, which gets the result, in so
// many messages. The other ranks end with partial sums. It is for long vectors. The operation must commute.
//
// ChainBroadcast backwards, at the same cost. The rank at the far end combines nothing; every other one combines each
// element once.
func ChainReduce(rank, size, n, root, messages int) Plan {
	p := ChainBroadcast(rank, size, n, root, messages).reversed(Right)
	combines := p.Combines()
	for i := range p {
		p[i].SendsInput, p[i].MergesInput = !combines && p[i].To != None, p[i].From != None
	}
	return p
}
