package plan

import "slices"

// Nodes is where the ranks of a group are: on nodes, within which they share memory. Any placement will do.
//
// What ranks of several nodes do together they do in stages: the ranks of every node in memory, some ranks of all nodes by
// messages, and again the ranks of every node in memory. The vector is cut into slices, one for each rail: rail i is the
// i'th rank of every node, and carries slice i between the nodes.
type Nodes struct {
	Members     [][]int // the ranks of every node, lowest first; nodes in the order of their first ranks
	Node, Place int     // this rank's node, and where it is among its members
	Root        int     // the node of the rank that Led has put on rail 0

	order []int // see Order
	first []int // the place of every node from which rails are counted
}

// oneMessage is the length in bytes of what the ranks of a node have for another up to which it is worth the way by one of them.
const oneMessage = 16 << 10

// Placed is the Nodes of rank; machines has the machine of every rank.
func Placed[M comparable](rank int, machines []M) Nodes {
	var n Nodes
	node := map[M]int{}
	for r, m := range machines {
		k, known := node[m]
		if !known {
			k = len(n.Members)
			node[m] = k
			n.Members = append(n.Members, nil)
		}
		if r == rank {
			n.Node, n.Place = k, len(n.Members[k])
		}
		n.Members[k] = append(n.Members[k], r)
	}
	n.order, n.first = slices.Concat(n.Members...), make([]int, len(n.Members))
	return n
}

// Led is n with root on rail 0.
func (n Nodes) Led(root int) Nodes {
	n.Root = n.Of(root)
	n.first = make([]int, len(n.Members))
	n.first[n.Root] = slices.Index(n.Members[n.Root], root)
	return n
}

// Spread is n with the ranks of all nodes but one each on a node of its own.
func (n Nodes) Spread(but int) Nodes {
	machines := make([]int, len(n.order))
	for k, members := range n.Members {
		for _, r := range members {
			machines[r] = len(machines)
			if k != but {
				machines[r] = r
			}
		}
	}
	return Placed(n.Here()[n.Place], machines)
}

// Here are the ranks of this rank's node.
func (n Nodes) Here() []int { return n.Members[n.Node] }

// Of is the node of rank.
func (n Nodes) Of(rank int) int {
	return slices.IndexFunc(n.Members, func(members []int) bool { return slices.Contains(members, rank) })
}

// Order is all ranks, node by node. Vectors that have a block for every rank have them in this order between nodes, so that
// those of a node are one range.
func (n Nodes) Order() []int { return n.order }

// InOrder reports whether that is the order of ranks. Only then can operations that do not commute go by nodes.
func (n Nodes) InOrder() bool { return slices.IsSorted(n.order) }

// Blocks has for every node the range of its ranks' blocks of size elements each.
func (n Nodes) Blocks(size int) []Range {
	blocks, lo := make([]Range, len(n.Members)), 0
	for k, members := range n.Members {
		blocks[k] = Range{lo, lo + len(members)*size}
		lo = blocks[k].Hi
	}
	return blocks
}

// Sizes are the least and the most ranks that a node has.
func (n Nodes) Sizes() (least, most int) {
	least = len(n.Here())
	for _, members := range n.Members {
		least, most = min(least, len(members)), max(most, len(members))
	}
	return least, most
}

// Together reports whether the ranks of a node, which have so many bytes each, better send them as one message.
func (n Nodes) Together(bytes int) bool {
	_, most := n.Sizes()
	return most*bytes <= oneMessage
}

// Rails is how many rails carry a vector of so many bytes: as many as the smallest node has ranks, unless it is short.
func (c Choices) Rails(n Nodes, bytes int) int {
	if c.Pick("nodes", len(n.Members), bytes) == "leaders" {
		return 1
	}
	least, _ := n.Sizes()
	return least
}

// Rail is the rail, of so many, that this rank is on: a rank of every node. Ranks that are on none get nil.
func (n Nodes) Rail(rails int) []int {
	i := mod(n.Place-n.first[n.Node], len(n.Here()))
	if i >= rails {
		return nil
	}
	ranks := make([]int, len(n.Members))
	for k, members := range n.Members {
		ranks[k] = members[(n.first[k]+i)%len(members)]
	}
	return ranks
}

// Leader is the place of the rank of this node that is on rail 0.
func (n Nodes) Leader() int { return n.first[n.Node] }

// Slices has for every rank of this node the slice of r that it has on its rail, of so many; an empty one if it is on none.
func (n Nodes) Slices(r Range, rails int) []Range {
	parts := make([]Range, len(n.Here()))
	for place := range parts {
		parts[place] = Range{r.Hi, r.Hi}
		if i := mod(place-n.Leader(), len(parts)); i < rails {
			s := Even(r.Len(), rails, i)
			parts[place] = Range{r.Lo + s.Lo, r.Lo + s.Hi}
		}
	}
	return parts
}

// Among is p, a plan of ranks numbered from 0, as one of the given ranks.
func (p Plan) Among(ranks []int) Plan {
	for i := range p {
		s := &p[i]
		if s.To != None {
			s.To = ranks[s.To]
		}
		if s.From != None {
			s.From = ranks[s.From]
		}
	}
	return p
}

// Without is p without what it moves from and to the given ranks.
func (p Plan) Without(ranks []int) Plan {
	for i := range p {
		s := &p[i]
		if slices.Contains(ranks, s.To) {
			s.To = None
		}
		if slices.Contains(ranks, s.From) {
			s.From = None
		}
	}
	return slices.DeleteFunc(p, func(s Step) bool { return s.To == None && s.From == None })
}
