package plan

// ChainBroadcast passes the vector of root from neighbour to neighbour, in so many messages. A rank passes one on while it receives the next
// one. It is for long vectors.
//
// Known as the pipeline, for example from Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for large,
// irregular all-gather problems", 2010. The last of k messages arrives after k+P-2 times the time of one. At most n elements sent, the
// least possible.
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

// ChainReduce combines the vectors of all ranks from neighbour to neighbour towards root, which gets the result, in so many messages. The
// other ranks end with partial sums. It is for long vectors. The operation must commute.
//
// ChainBroadcast backwards, at the same cost. The rank at the far end combines nothing; every other one combines each element once.
func ChainReduce(rank, size, n, root, messages int) Plan {
	p := ChainBroadcast(rank, size, n, root, messages).reversed(Right)
	combines := p.Combines()
	for i := range p {
		p[i].SendsInput, p[i].MergesInput = !combines && p[i].To != None, p[i].From != None
	}
	return p
}

// ChainAllReduce combines the vectors of all ranks from neighbour to neighbour, from rank 0 to the last one, which sends the result back the
// same way, in so many messages. Results travel while later messages are still on their way to the last rank. It is for long vectors if the
// links at one end of the chain, or at both, are slower than the others. The operation must commute.
//
// ChainReduce and ChainBroadcast in one. The last of k messages comes back to rank 0 after k+3P-5 times the time of one. n elements sent by
// the ranks at the ends, the least possible of any all-reduce; 2n by the others.
func ChainAllReduce(rank, size, n, messages int) Plan {
	all := Range{0, n}
	var p Plan
	move := func(to, send, from, recv int, merge Merge) {
		s := Step{To: None, From: None}
		if to >= 0 && to < size && send >= 0 && send < messages {
			s.To, s.Send = to, all.Part(messages, send)
		}
		if from >= 0 && from < size && recv >= 0 && recv < messages {
			s.From, s.Recv, s.Merge = from, all.Part(messages, recv), merge
		}
		if s.To != None || s.From != None {
			p = append(p, s)
		}
	}
	behind := 2 * (size - 1 - rank) // how many messages lie between a partial sum and the result that a rank receives next
	for i := range messages + behind + 1 {
		if rank == size-1 {
			move(rank-1, i-1, rank-1, i, Left)
			continue
		}
		move(rank+1, i-1, rank-1, i, Left)
		move(rank-1, i-behind-1, rank+1, i-behind, Replace)
	}
	return p
}
