package plan

// PipelinedAllGather appends to p the plan that gives every rank every block, around a ring, in messages of at most n elements. Rank r holds
// blocks[r] at the start. A rank passes on a message while it receives the next one. It is for long blocks of very different lengths: in
// the steps of RingAllGather, all ranks wait for the one that has the longest.
//
// Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for large, irregular all-gather problems", 2010. Of a single
// block in k messages, the last one arrives after k+P-2 times the time of one. All blocks but one are sent, the least possible.
func PipelinedAllGather(p Plan, rank int, blocks []Range, n int) Plan {
	size := len(blocks)
	out, in := newStream(rank, blocks, n), newStream(rank-1, blocks, n)
	for !out.isEmpty() || !in.isEmpty() {
		s := Step{To: None, From: None}
		if !out.isEmpty() {
			s.To, s.Send = mod(rank+1, size), out.next()
		}
		if !in.isEmpty() {
			s.From, s.Recv = mod(rank-1, size), in.next()
		}
		p = append(p, s)
	}
	return p
}

// PipelinedReduceScatter appends to p the plan that gives rank the reduction of blocks[rank]. It is PipelinedAllGather turned around, at the
// same cost, and overwrites the whole vector. The operation must commute.
func PipelinedReduceScatter(p Plan, rank int, blocks []Range, n int) Plan {
	before := len(p)
	p = PipelinedAllGather(p, rank, blocks, n)
	p[before:].reversed(Right)
	first := blocks[mod(rank+1, len(blocks))] // what this rank sends before it has received anything
	for i := before; i < len(p); i++ {
		p[i].SendsInput = p[i].To != None && first.Lo <= p[i].Send.Lo && p[i].Send.Hi <= first.Hi
		p[i].MergesInput = p[i].From != None
	}
	return p
}

// A stream is the messages from a rank to the next one on a ring: the rank's own block, and those of the ranks before it, but for the
// block of the next rank.
type stream struct {
	blocks []Range
	of     int // the rank whose block is sent
	left   int // blocks, with this one
	lo     int // where the next message begins
	n      int // the most elements of a message
}

func newStream(rank int, blocks []Range, n int) stream {
	rank = mod(rank, len(blocks))
	return stream{blocks, rank, len(blocks) - 1, blocks[rank].Lo, n}
}

func (s *stream) isEmpty() bool { return s.left == 0 }

// next returns the next message. An empty block is an empty message.
func (s *stream) next() Range {
	hi := s.blocks[s.of].Hi
	r := Range{s.lo, min(s.lo+s.n, hi)}
	s.lo = r.Hi
	if r.Hi == hi {
		s.of, s.left = mod(s.of-1, len(s.blocks)), s.left-1
		s.lo = s.blocks[s.of].Lo
	}
	return r
}
