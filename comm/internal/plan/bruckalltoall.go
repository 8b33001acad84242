package plan

// BruckAllToAll sends a block of n elements from every rank to every other one. It is for short blocks. Where r is this rank, block i of
// the vector is for rank r+i at the start, and from rank r-i at the end. After its size blocks the vector has scratch space for size/2*2
// more, from which and into which blocks travel.
//
// Bruck, Ho, Kipnis, Upfal and Weathersby 1997. ceil(log2 P) steps, between copies; n P/2 elements sent in each.
func BruckAllToAll(rank, size, n int) Plan {
	var p Plan
	for d := 1; d < size; d *= 2 {
		to, from := mod(rank+d, size), mod(rank-d, size)
		var pack, unpack Plan
		out, in := size*n, (size+size/2)*n // where the blocks to send, and those that have come, begin
		at := 0
		for i := d; i < size; i += 2 * d { // blocks whose index has the bit d
			run := Range{i * n, min(i+d, size) * n}
			pack = append(pack, copyOf(rank, run, out+at))
			unpack = append(unpack, Step{To: rank, Send: Range{in + at, in + at + run.Len()}, From: rank, Recv: run})
			at += run.Len()
		}
		p = append(p, pack...)
		p = append(p, Step{To: to, Send: Range{out, out + at}, From: from, Recv: Range{in, in + at}})
		p = append(p, unpack...)
	}
	return p
}

// copyOf copies r to where to begins.
func copyOf(rank int, r Range, to int) Step {
	return Step{To: rank, Send: r, From: rank, Recv: Range{to, to + r.Len()}}
}
