package plan

// PairwiseReduceScatter appends to p the plan that gives rank the reduction of blocks[rank]. Every rank sends each
// block directly to its owner. Only blocks[rank] is written, and holds the owner's elements at the start. What is sent
// and what is received may be different vectors. The operation must commute.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.4 ("pairwise exchange"). P-1 steps; n(P-1)/P elements sent, the
// least possible.
func PairwiseReduceScatter(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	for s := 1; s < size; s++ {
		to := mod(rank+s, size)
		p = append(p, Step{
			To: to, Send: blocks[to],
			From: mod(rank-s, size), Recv: blocks[rank], Merge: Right,
		})
	}
	return p
}

// OrderedReduceScatter is PairwiseReduceScatter in order of rank, for operations that do not commute. Blocks first
// travel up: every owner combines those of the ranks below it, from the nearest to rank 0. Then they travel down.
//
// 2(P-1) steps, each of which only sends or only receives on most ranks; n(P-1)/P elements sent.
func OrderedReduceScatter(p Plan, rank int, blocks []Range) Plan {
	for _, way := range []struct {
		up    int
		merge Merge
	}{{1, Left}, {-1, Right}} {
		for s := 1; s < len(blocks); s++ {
			step := Step{To: None, From: None, Merge: way.merge}
			if to := rank + s*way.up; to >= 0 && to < len(blocks) {
				step.To, step.Send = to, blocks[to]
			}
			if from := rank - s*way.up; from >= 0 && from < len(blocks) {
				step.From, step.Recv = from, blocks[rank]
			}
			p = append(p, step)
		}
	}
	return p
}

// PairwiseAllToAll appends to p the plan that sends send[r] to every rank r and receives recv[r] from it. What is sent
// and what is received are different vectors.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.3 ("pairwise exchange"). P-1 steps, after a copy; every element is
// sent once.
func PairwiseAllToAll(p Plan, rank int, send, recv []Range) Plan {
	size := len(send)
	for s := range size {
		to, from := mod(rank+s, size), mod(rank-s, size)
		p = append(p, Step{To: to, Send: send[to], From: from, Recv: recv[from]})
	}
	return p
}

// PairwiseAllGather appends to p the plan that gives every rank every block. Every rank sends its block straight to
// every other one, and no message waits for another one. The blocks may be one vector, and rank r holds blocks[r] at
// the start.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.3, with one block for all. P-1 steps; one latency for each 8 of them,
// as far as a pipeline looks ahead; all blocks but one sent.
func PairwiseAllGather(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	for s := 1; s < size; s++ {
		to, from := mod(rank+s, size), mod(rank-s, size)
		p = append(p, Step{To: to, Send: blocks[rank], From: from, Recv: blocks[from]})
	}
	return p
}

// PairwiseAllReduce exchanges whole vectors between all ranks. It is for short vectors and long latencies. A rank
// receives the other P-1 vectors into extra memory after its own (see [Plan.Extent]), and then combines all of them in
// order of rank: all ranks get the same bits, and the operation need not commute.
//
// NVIDIA's TensorRT-LLM calls this a one-shot all-reduce. P-1 steps, and latencies as in PairwiseAllGather; n(P-1)
// elements sent.
func PairwiseAllReduce(rank, size, n int) Plan {
	all := Range{0, n}
	blocks := make([]Range, size) // where the vectors are
	next := n
	for r := range blocks {
		if r == rank {
			blocks[r] = all
			continue
		}
		blocks[r] = Range{next, next + n}
		next += n
	}
	p := PairwiseAllGather(nil, rank, blocks)
	into := blocks[0]
	for r := 1; r < size; r++ {
		s := Step{To: rank, Send: blocks[r], From: rank, Recv: into, Merge: Right}
		if r == rank {
			s.Send, s.Recv, s.Merge = into, all, Left
			into = all
		}
		p = append(p, s)
	}
	return p
}

// mostAtOnce is how many empty messages a rank sends before it waits for others. A pipeline can have so many under way,
// even if they wait for their receivers.
const mostAtOnce = 16

// PairwiseBarrier sends an empty message from every rank to every other one. P-1 messages, but only one latency for up
// to mostAtOnce of them.
func PairwiseBarrier(rank, size int) Plan {
	var p Plan
	for first := 1; first < size; first += mostAtOnce {
		behind := min(first+mostAtOnce, size)
		for s := first; s < behind; s++ {
			p = append(p, Step{To: mod(rank+s, size), From: None})
		}
		for s := first; s < behind; s++ {
			p = append(p, Step{To: None, From: mod(rank-s, size)})
		}
	}
	return p
}
