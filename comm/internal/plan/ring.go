package plan

// A Ring is how blocks go around a ring of ranks.
//
// One way, every rank sends to the next one. Both ways, one half of every block goes clockwise like this, and the other
// half counter-clockwise: each rank sends to both neighbours, and receives from both, at the same time. If a connection
// is slower than the network, that is up to twice as fast.
//
// In short messages, a rank passes on a message while it receives the next one, and both directions are busy however
// long the blocks are.
type Ring struct {
	BothWays bool
	Longest  int // the most elements of a message; 0: any number
}

// ReduceScatter appends to p the plan that reduces the vector block by block around the ring. At the end blocks[rank]
// holds the reduction over all ranks, and the other blocks hold partial sums. Each block is reduced in a fixed order of
// ranks that begins somewhere else on the ring, so the operation must commute.
//
// Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// P-1 steps for each of the messages of a block; n(P-1)/P elements sent, the least possible.
func (w Ring) ReduceScatter(p Plan, rank int, blocks []Range) Plan {
	before := len(p)
	for s := 1; s < len(blocks); s++ {
		if p = w.pass(p, rank, s, blocks, Left); s == 1 {
			for i := before; i < len(p); i++ {
				p[i].SendsInput = p[i].To != None
			}
		}
	}
	for i := before; i < len(p); i++ {
		p[i].MergesInput = p[i].From != None
	}
	return p
}

// AllGather appends to p the plan that gives every rank every block, around the ring. Rank r holds blocks[r] at the
// start. All blocks but one are sent, the least possible.
func (w Ring) AllGather(p Plan, rank int, blocks []Range) Plan {
	for s := range len(blocks) - 1 {
		p = w.pass(p, rank, s, blocks, Replace)
	}
	return p
}

// AllReduce is ReduceScatter and AllGather over even blocks. It is for long vectors. The operation must commute.
//
// 2n(P-1)/P elements sent, the least possible.
func (w Ring) AllReduce(rank, size, n int) Plan {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Even(n, size, i)
	}
	return w.AllGather(w.ReduceScatter(nil, rank, blocks), rank, blocks)
}

// pass appends to p the steps in which ranks pass on a block: the one that is so many positions behind their own.
func (w Ring) pass(p Plan, rank, behind int, blocks []Range, merge Merge) Plan {
	there := passOn(rank, clockwise, behind, blocks, merge)
	if !w.BothWays {
		return w.inMessages(p, there)
	}
	back := passOn(rank, -clockwise, behind, blocks, merge)
	return w.inMessages(p, there.part(2, 0), back.part(2, 1))
}

// clockwise is the direction of a ring in which ranks send to the next one.
const clockwise = 1

// passOn passes on a block in a direction of the ring.
func passOn(rank, direction, behind int, blocks []Range, merge Merge) Step {
	size := len(blocks)
	at := rank - direction*behind
	return Step{
		To: mod(rank+direction, size), Send: blocks[mod(at, size)],
		From: mod(rank-direction, size), Recv: blocks[mod(at-direction, size)], Merge: merge,
	}
}

// inMessages appends what the given steps move, in messages that take turns.
func (w Ring) inMessages(p Plan, steps ...Step) Plan {
	for i := 0; ; i++ {
		before := len(p)
		for _, s := range steps {
			sends, receives := w.messages(s.Send), w.messages(s.Recv)
			switch {
			case i < sends && i < receives:
				s.Send, s.Recv = s.Send.Part(sends, i), s.Recv.Part(receives, i)
			case i < sends:
				s = Step{To: s.To, Send: s.Send.Part(sends, i), From: None}
			case i < receives:
				s = Step{To: None, From: s.From, Recv: s.Recv.Part(receives, i), Merge: s.Merge}
			default:
				continue
			}
			p = append(p, s)
		}
		if len(p) == before {
			return p
		}
	}
}

// messages returns in how many messages r is sent. An empty block is an empty message.
func (w Ring) messages(r Range) int {
	if w.Longest == 0 {
		return 1
	}
	return max((r.Len()+w.Longest-1)/w.Longest, 1)
}
