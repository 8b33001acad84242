// Package pattern is pure: it says which bytes each rank sends and receives in the best known algorithms of a collective. Package limit
// carries this out over raw sockets, to find out how fast a collective can be.
package pattern

import "fmt"

// Element is the size of a float32 in bytes.
const Element = 4

// A Kind is what a Move does.
type Kind byte

// The kinds of moves. Their values are the letters that limit.c reads.
const (
	Send Kind = 's' // send bytes to a rank
	Recv Kind = 'r' // receive bytes from a rank
	Add  Kind = 'a' // receive bytes from a rank, and add them to those that are there, as float32
	Copy Kind = 'c' // copy bytes
	Sum  Kind = 'p' // add bytes to those that are there, as float32
)

// A Move moves Length bytes from or to At. Offsets are those of a rank's memory, see Way.
type Move struct {
	Kind   Kind
	Peer   int // the other rank, of Send, Recv and Add
	From   int // the source, of Copy and Sum
	At     int
	Length int
}

// A Step is what a rank does at the same time: at most one Send to each peer, and one Recv or Add from each. Copy and Sum have steps of
// their own.
type Step []Move

// A Way is one rank's part of an algorithm. Its memory begins with the buffer a of the operation; then comes b, which has the same
// length; and then what the algorithm needs besides. See Ways for where operands are.
type Way struct {
	Name   string
	Steps  []Step
	Memory int // in bytes
}

// Limits of the lengths with which an algorithm is worth a try, in bytes.
const (
	directLimit = 256 << 10 // each rank sends everything to all others
	chunk       = 128 << 10 // of what is passed on before all of it is there
)

// Ways returns the ways to carry out an operation of n bytes, which is divisible by Element*size.
//
// all_reduce, reduce to rank 0 and broadcast from rank 0 work on a in place. all_gather gathers the first parts of all a in b.
// reduce_scatter leaves a rank's part of the sum at the beginning of b. all_to_all sends the parts of a to the parts of b. sendrecv sends a
// of rank 0 to b of rank 1, and then a of rank 1 to b of rank 0. buckets is all_reduce. What a is in the end is not specified, unless it is the result.
func Ways(op string, rank, size, n int) ([]Way, error) {
	if size < 2 || rank < 0 || rank >= size || n < 0 || n%(Element*size) != 0 {
		return nil, fmt.Errorf("%s of %d bytes on rank %d of %d", op, n, rank, size)
	}
	c := collective{rank: rank, size: size, n: n, part: n / size, even: size&(size-1) == 0}
	switch op {
	case "all_reduce", "buckets":
		return c.allReduce(), nil
	case "reduce":
		return c.reduce(), nil
	case "broadcast":
		return c.broadcast(), nil
	case "all_gather":
		return c.allGather(), nil
	case "reduce_scatter":
		return c.reduceScatter(), nil
	case "all_to_all":
		return c.allToAll(), nil
	case "barrier":
		return c.barrier(), nil
	case "sendrecv":
		return c.sendRecv(), nil
	}
	return nil, fmt.Errorf("unknown operation %s", op)
}

// Sent returns how many bytes of a a rank sends.
func Sent(op string, rank, size, n int) int {
	switch {
	case op == "all_gather":
		return n / size
	case op == "sendrecv" && rank > 1:
		return 0
	}
	return n
}

// A collective is one operation as one rank sees it. Its methods return steps.
type collective struct {
	rank, size, n int
	part          int  // of a rank, in bytes
	even          bool // the number of ranks is a power of two
}

// way makes a Way of steps.
func (c collective) way(name string, steps ...[]Step) Way {
	w := Way{Name: name, Memory: 2 * c.n}
	for _, list := range steps {
		for _, s := range list {
			if len(s) == 0 {
				continue
			}
			w.Steps = append(w.Steps, s)
			for _, m := range s {
				w.Memory = max(w.Memory, m.At+m.Length, m.From+m.Length)
			}
		}
	}
	return w
}

// others returns the other ranks, each rank's next one first.
func (c collective) others() []int {
	list := make([]int, 0, c.size-1)
	for d := 1; d < c.size; d++ {
		list = append(list, c.at(d))
	}
	return list
}

// at is the rank that is d behind this one.
func (c collective) at(d int) int { return mod(c.rank+d, c.size) }

func mod(a, b int) int { return (a%b + b) % b }

// blocks returns a move of the parts from number i up to number j, in memory that begins at base.
func (c collective) blocks(kind Kind, peer, base, i, j int) Move {
	return Move{Kind: kind, Peer: peer, At: base + i*c.part, Length: (j - i) * c.part}
}

// whole returns a move of all bytes of a.
func (c collective) whole(kind Kind, peer int) Move {
	return Move{Kind: kind, Peer: peer, Length: c.n}
}

func (c collective) barrier() []Way {
	token := func(kind Kind, peer int) Move { return Move{Kind: kind, Peer: peer, At: peer, Length: 1} }
	var rounds []Step
	for d := 1; d < c.size; d *= 2 {
		out, in := token(Send, c.at(d)), token(Recv, c.at(-d))
		in.At = c.size + d
		rounds = append(rounds, Step{out, in})
	}
	var all Step
	for _, peer := range c.others() {
		in := token(Recv, peer)
		in.At += c.size
		all = append(all, token(Send, peer), in)
	}
	return []Way{c.way("dissemination", rounds), c.way("direct", []Step{all})}
}

func (c collective) sendRecv() []Way {
	out, in := c.whole(Send, 1-c.rank), c.whole(Recv, 1-c.rank)
	in.At = c.n
	switch c.rank {
	case 0:
		return []Way{c.way("ping-pong", []Step{{out}, {in}})}
	case 1:
		return []Way{c.way("ping-pong", []Step{{in}, {out}})}
	}
	return []Way{c.way("ping-pong")}
}

func (c collective) allToAll() []Way {
	own := []Step{{Move{Kind: Copy, From: c.rank * c.part, At: c.n + c.rank*c.part, Length: c.part}}}
	exchange := func(out, in int) Step {
		return Step{c.blocks(Send, out, 0, out, out+1), c.blocks(Recv, in, c.n, in, in+1)}
	}
	var all Step
	var pairs []Step
	for d := 1; d < c.size; d++ {
		all = append(all, exchange(c.at(d), c.at(-d))...)
		pairs = append(pairs, exchange(c.at(d), c.at(-d)))
	}
	list := []Way{c.way("direct", []Step{all}, own)}
	if c.size > 2 {
		list = append(list, c.way("pairwise", pairs, own))
		if c.n <= directLimit {
			list = append(list, c.way("bruck", c.bruck()))
		}
	}
	return list
}

// bruck is the algorithm of Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", 1997: few messages, in which blocks travel several times.
func (c collective) bruck() (steps []Step) {
	turned, packed, received := 2*c.n, 3*c.n, 4*c.n
	local := func(from, at int) { steps = append(steps, Step{{Kind: Copy, From: from, At: at, Length: c.part}}) }
	for i := range c.size {
		local(c.at(i)*c.part, turned+i*c.part)
	}
	for d := 1; d < c.size; d *= 2 {
		var moved []int
		for i := range c.size {
			if i&d != 0 {
				local(turned+i*c.part, packed+len(moved)*c.part)
				moved = append(moved, i)
			}
		}
		steps = append(steps, Step{c.blocks(Send, c.at(d), packed, 0, len(moved)), c.blocks(Recv, c.at(-d), received, 0, len(moved))})
		for k, i := range moved {
			local(received+k*c.part, turned+i*c.part)
		}
	}
	for i := range c.size {
		local(turned+i*c.part, c.n+c.at(-i)*c.part)
	}
	return steps
}
