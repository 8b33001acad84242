package plan

// BruckAllToAll brings blocks of n elements from every rank to every other one: for short blocks. The vector holds the block
// for rank r+i at place i at the start, where r is this rank, and that from rank r-i at the end; behind the size places there
// is room for as many more, from which and to which blocks are sent.
//
// Bruck, Ho, Kipnis, Upfal and Weathersby 1997. ceil(log2 P) steps, between copies; n P/2 elements sent in each.
func BruckAllToAll(rank, size, n int) Plan {
	var p Plan
	for d := 1; d < size; d *= 2 {
		to, from := mod(rank+d, size), mod(rank-d, size)
		var pack, unpack Plan
		out, in := size*n, (size+size/2)*n // where blocks lie that are sent, and that have come
		at := 0
		for i := d; i < size; i += 2 * d { // places whose number has the bit d
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
