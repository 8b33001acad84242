package plan

import (
	"cmp"
	"slices"
)

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
// same way, in so many messages. Results travel while later messages are still on their way to the last rank. It is for long vectors and one or
// two links that are slower than the others: the slowest one at the end of the chain, and the other one at its beginning. Operands are combined
// in order of rank.
//
// ChainReduce and ChainBroadcast in one. n elements sent by the ranks at both ends, the least possible of any all-reduce, and 2n by the others: as
// many together as in a ring. If all links but those at the ends are at least twice as fast as the slowest one, k messages take at most k+2P-2
// times as long as one on that link.
func ChainAllReduce(rank, size, n, messages int) Plan {
	all := Range{0, n}
	var p Plan
	step := func(to, sends, from, receives int, merge Merge) { // sends and receives are numbers of messages
		s := Step{To: None, From: None}
		if to >= 0 && to < size && sends >= 0 && sends < messages {
			s.To, s.Send = to, all.Part(messages, sends)
		}
		if from >= 0 && from < size && receives >= 0 && receives < messages {
			s.From, s.Recv, s.Merge = from, all.Part(messages, receives), merge
		}
		if s.To != None || s.From != None {
			p = append(p, s)
		}
	}
	lag := 2 * (size - 1 - rank) // a message comes back so many messages after it has passed
	for i := range messages + lag + 1 {
		if rank == size-1 {
			step(rank-1, i-1, rank-1, i, Left)
			continue
		}
		step(rank+1, i-1, rank-1, i, Left)
		step(rank-1, i-lag-1, rank+1, i-lag, Replace)
	}
	return p
}

// A Chain says how ranks form a chain for ChainAllReduce. The zero value is for links that are all the same.
type Chain struct {
	Order        []int // the ranks; nil: as they are numbered
	MessageCost  int   // how many bytes the slowest link sends in the time that a message costs; 0: see messageCost
	LeastMessage int   // the least bytes of a message: those that the slowest link sends in a latency, so that results do not come back too late
}

// allReduce returns the plan for a vector of n elements of elem bytes each.
func (c Chain) allReduce(rank, size, n, elem int) Plan {
	messages := chainMessages(max(size, 3), n*elem, cmp.Or(c.MessageCost, messageCost)) // for two ranks, too, results overlap with what they are made of
	messages = min(messages, max(n*elem/max(c.LeastMessage, elem), 1))
	if c.Order == nil {
		return ChainAllReduce(rank, size, n, messages)
	}
	return ChainAllReduce(slices.Index(c.Order, rank), size, n, messages).Among(c.Order)
}

// SlowestLast returns the order of ranks in a chain in which the machine with the slowest link comes last, and that with the next slowest one
// first. machines has the machine of each rank, and gaps the time for a byte on the link of each machine. There are two machines or more.
func SlowestLast(machines, gaps []int) []int {
	slow := make([]int, len(gaps)) // machines, those with slow links first
	for m := range slow {
		slow[m] = m
	}
	slices.SortStableFunc(slow, func(a, b int) int { return gaps[b] - gaps[a] })
	place := func(rank int) int {
		switch m := machines[rank]; m {
		case slow[0]:
			return len(gaps)
		case slow[1]:
			return -1
		default:
			return m
		}
	}
	order := make([]int, len(machines))
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int { return place(a) - place(b) })
	return order
}
