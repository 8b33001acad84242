package plan

// BruckAllGather appends to p the plan that gives every rank every block. The blocks are one vector, and rank r holds
// blocks[r] at the start. It is for short blocks. Over distances that double, every rank passes on the blocks that it
// has, which are those of the ranks before it.
//
// Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", 1997; here without its rotation, so that blocks on both sides of rank 0 travel as two
// messages. ceil(log2 P) distances; all blocks but one sent, the least possible.
func BruckAllGather(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	for d := 1; d < size; d *= 2 {
		count := min(d, size-d)
		out, sends := blocksUpTo(rank, count, blocks)
		in, receives := blocksUpTo(rank-d, count, blocks)
		for i := range max(sends, receives) {
			s := Step{To: None, From: None}
			if i < sends {
				s.To, s.Send = mod(rank+d, size), out[i]
			}
			if i < receives {
				s.From, s.Recv = mod(rank-d, size), in[i]
			}
			p = append(p, s)
		}
	}
	return p
}

// blocksUpTo returns the last count blocks up to that of rank, around the ring of ranks: n ranges, which are one or
// two.
func blocksUpTo(rank, count int, blocks []Range) (ranges [2]Range, n int) {
	size := len(blocks)
	first, last := mod(rank-count+1, size), mod(rank, size)
	if first <= last {
		return [2]Range{joined(blocks[first : last+1])}, 1
	}
	return [2]Range{joined(blocks[first:]), joined(blocks[:last+1])}, 2
}

// BruckAllToAll sends a block of n elements from every rank to every other one. It is for short blocks. What is sent and
// what is received are different vectors. Blocks travel from and into scratch memory.
//
// Bruck, Ho, Kipnis, Upfal and Weathersby 1997. ceil(log2 P) steps, between copies; n P/2 elements sent in each.
func BruckAllToAll(rank, size, n int) Plan {
	rotated := size * n                                // where block i for rank+i begins, which becomes that from rank-i
	out, in := rotated+size*n, rotated+(size+size/2)*n // where the blocks to send, and those that have come, begin
	p := Plan{
		copyOf(rank, Range{rank * n, size * n}, rotated),
		copyOf(rank, Range{0, rank * n}, rotated+(size-rank)*n),
	}
	first := len(p)
	for d := 1; d < size; d *= 2 {
		var pack, unpack Plan
		at := 0
		for i := d; i < size; i += 2 * d { // blocks whose index has the bit d
			run := Range{rotated + i*n, rotated + min(i+d, size)*n}
			pack = append(pack, copyOf(rank, run, out+at))
			unpack = append(unpack, copyOf(rank, Range{in + at, in + at + run.Len()}, run.Lo))
			at += run.Len()
		}
		p = append(p, pack...)
		p = append(p, Step{
			To: mod(rank+d, size), Send: Range{out, out + at}, From: mod(rank-d, size), Recv: Range{in, in + at},
		})
		p = append(p, unpack...)
	}
	for i := range size {
		p = append(p, copyOf(rank, Range{rotated + i*n, rotated + (i+1)*n}, mod(rank-i, size)*n))
	}
	for i := range p[first:] {
		p[first+i].Forwards = true
	}
	return p
}

// copyOf copies r to where to begins.
func copyOf(rank int, r Range, to int) Step {
	return Step{To: rank, Send: r, From: rank, Recv: Range{to, to + r.Len()}}
}
