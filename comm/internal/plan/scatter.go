package plan

import (
	"math/bits"
	"slices"
)

// HalvingReduce combines the vectors of all ranks in parts: ranks whose distances from root differ in one bit send each other the half of what
// they have that the other one continues with, until each has reduced a part of its own. Then the parts travel up a binomial tree to root.
// The other ranks end with partial sums. It is for vectors of medium length and many ranks. If size is not a power of two, the surplus ranks
// give their vectors to others first. The operation must commute.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.6 ("Rabenseifner's algorithm"). 2 log2 P steps (plus one); 2n(P-1)/P elements sent at most,
// for P a power of two, and n more to each rank that a surplus rank gives its vector.
func HalvingReduce(rank, size, n, root int) Plan {
	numbers := make([]int, size) // ranks are numbered from root
	for i := range numbers {
		numbers[i] = mod(root+i, size)
	}
	return halvingReduce(mod(rank-root, size), size, n).Among(numbers)
}

// halvingReduce is HalvingReduce for root 0.
func halvingReduce(rank, size, n int) Plan {
	all := Range{0, n}
	power := 1 << (bits.Len(uint(size)) - 1) // the largest power of two <= size
	if rank >= power {
		return Plan{{To: rank - power, Send: all, From: None, SendsInput: true}}
	}
	var p Plan
	input := rank+power >= size // it has not received anything yet
	if !input {
		p = append(p, Step{To: None, From: rank + power, Recv: all, Merge: Right, MergesInput: true})
	}
	parts := func(from, count int) Range { return Range{all.Part(power, from).Lo, all.Part(power, from+count-1).Hi} }
	for half, lo := power/2, 0; half > 0; half /= 2 { // of the parts from lo to lo+2*half
		keep, send := lo, lo+half
		if rank&half != 0 {
			keep, send = send, keep
		}
		to := rank ^ half
		p = append(p, Step{
			To: to, Send: parts(send, half), From: to, Recv: parts(keep, half), Merge: fromSide(rank, half), SendsInput: input, MergesInput: input,
		})
		lo, input = keep, false
	}
	for count := 1; count < power; count *= 2 {
		if rank&count != 0 {
			return append(p, Step{To: rank - count, Send: parts(rank, count), From: None})
		}
		p = append(p, Step{To: None, From: rank + count, Recv: parts(rank+count, count)})
	}
	return p
}

// ScatterBroadcast sends each rank a part of the vector of root down a binomial tree, and then ranks exchange their parts by recursive
// doubling. It is for vectors of medium length and many ranks. If size is not a power of two, the surplus ranks get the vector from others last.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.2 ("van de Geijn"). It is HalvingReduce backwards, and costs the
// same, but root receives nothing.
func ScatterBroadcast(rank, size, n, root int) Plan {
	p := HalvingReduce(rank, size, n, root).reversed(Replace)
	for i := range p {
		s := &p[i]
		if s.To == root {
			s.To = None
		}
		if rank == root {
			s.From = None
		}
	}
	return slices.DeleteFunc(p, func(s Step) bool { return s.To == None && s.From == None })
}
