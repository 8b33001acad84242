package plan

import "math/bits"

// DoublingAllReduce exchanges whole vectors between ranks whose numbers differ in one bit. It is for short vectors. If
// size is not a power of two, the surplus ranks give their vectors to neighbours first, and get the result from them
// last.
//
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.5
// ("recursive doubling"). log2 P steps (plus two); n log2 P elements sent. Both partners of an exchange combine the
// same two vectors, which stand for ranks next to each other, in order of rank: all ranks get the same bits, and the
// operation need not commute.
func DoublingAllReduce(rank, size, n int) Plan {
	all := Range{0, n}
	return folded(rank, size, n, func(me, core int, partner func(bit int) int) Plan {
		var p Plan
		for bit := 1; bit < core; bit *= 2 {
			to := partner(bit)
			p = append(p, Step{To: to, Send: all, From: to, Recv: all, Merge: fromSide(me, bit)})
		}
		return p
	})
}

// DoublingAllGather appends to p the plan that gives every rank every block. The blocks are one vector, and rank r
// holds blocks[r] at the start. It is for short blocks. It is HalvingReduceScatter turned around: partners exchange all
// blocks that they have.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.1 ("recursive doubling"). log2 P steps (plus two); all blocks but one
// sent, the least possible, for P a power of two.
func DoublingAllGather(p Plan, rank int, blocks []Range) Plan {
	before := len(p)
	p = HalvingReduceScatter(p, rank, blocks)
	p[before:].reversed(Replace)
	return p
}

// folded makes the plan of core, which needs a power of two of ranks, for any number of ranks. The surplus ranks give
// their vectors to neighbours first, and get the result from them last. In core this rank has number me, and
// partner(bit) is the rank whose number differs in that bit.
func folded(rank, size, n int, core func(me, core int, partner func(bit int) int) Plan) Plan {
	all := Range{0, n}
	power := 1 << (bits.Len(uint(size)) - 1) // the largest power of two <= size
	extra := size - power                    // this many even ranks give their vector to the odd rank above them
	me := rank - extra
	var p Plan
	if rank < 2*extra {
		if rank%2 == 0 {
			return Plan{
				{To: rank + 1, Send: all, From: None},
				{To: None, From: rank + 1, Recv: all},
			}
		}
		p = append(p, Step{To: None, From: rank - 1, Recv: all, Merge: Left})
		me = rank / 2
	}
	p = append(p, core(me, power, func(bit int) int {
		partner := me ^ bit
		if partner < extra {
			return 2*partner + 1
		}
		return partner + extra
	})...)
	if rank < 2*extra {
		p = append(p, Step{To: rank - 1, Send: all, From: None})
	}
	return p
}

// fromSide says on which side number me merges what comes from the number that differs in bit.
func fromSide(me, bit int) Merge {
	if me&bit != 0 {
		return Left
	}
	return Right
}
