package plan

import "math/bits"

// DoublingAllReduce exchanges whole vectors between ranks whose numbers differ in one bit: for short vectors.
// When size is no power of two, the first ranks fold into their neighbours before and are served after.
//
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.5
// ("recursive doubling"). log2 P steps (plus two); n log2 P elements sent. Both partners of an exchange combine the
// same two vectors, which stand for ranks next to each other, in order of rank: all ranks get the same bits, and the
// operation need not commute.
func DoublingAllReduce(rank, size, n int) Plan {
	all := Range{0, n}
	core := 1 << (bits.Len(uint(size)) - 1) // the largest power of two <= size
	extra := size - core                    // this many even ranks fold into the odd rank above them
	var p Plan
	me := rank - extra
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
	for bit := 1; bit < core; bit *= 2 {
		partner := me ^ bit
		if partner < extra {
			partner = 2*partner + 1
		} else {
			partner += extra
		}
		merge := Right
		if partner < rank {
			merge = Left
		}
		p = append(p, Step{To: partner, Send: all, From: partner, Recv: all, Merge: merge})
	}
	if rank < 2*extra {
		p = append(p, Step{To: rank - 1, Send: all, From: None})
	}
	return p
}
