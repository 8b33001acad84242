package plan

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
)

// Nodes says on which nodes the ranks of a group are. The ranks of a node share memory. Any placement is possible.
//
// Ranks of several nodes work together in stages: the ranks of every node in memory, some ranks of all nodes by
// messages, and again the ranks of every node in memory. The vector is cut into slices, one for each rail. Rail i has
// one rank of every node, the i'th of it, and carries slice i between the nodes.
type Nodes struct {
	Members   [][]int // the ranks of every node, lowest first; nodes in the order of their first ranks
	Node      int     // this rank's node
	LocalRank int     // this rank's index in Members[Node]
	Root      int     // the node of the rank that RootedAt has put on rail 0

	order []int // see Order
	first []int // the local rank of every node that is on rail 0
}

// Placed returns the Nodes of rank. machines has the machine of every rank.
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
			n.Node, n.LocalRank = k, len(n.Members[k])
		}
		n.Members[k] = append(n.Members[k], r)
	}
	n.order, n.first = slices.Concat(n.Members...), make([]int, len(n.Members))
	return n
}

// RootedAt returns n with root on rail 0.
func (n Nodes) RootedAt(root int) Nodes {
	n.Root = n.Of(root)
	n.first = make([]int, len(n.Members))
	n.first[n.Root] = slices.Index(n.Members[n.Root], root)
	return n
}

// Spread returns n with every rank on a node of its own, except for the ranks of one node.
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
	return Placed(n.Here()[n.LocalRank], machines)
}

// Here returns the ranks of this rank's node.
func (n Nodes) Here() []int { return n.Members[n.Node] }

// Of returns the node of rank.
func (n Nodes) Of(rank int) int {
	return slices.IndexFunc(n.Members, func(members []int) bool { return slices.Contains(members, rank) })
}

// Order returns all ranks, node by node. Between nodes, vectors with a block for every rank are in this order, so that
// the blocks of a node are one range.
func (n Nodes) Order() []int { return n.order }

// InOrder reports whether Order is the order of ranks. Otherwise operations that do not commute cannot be carried out
// node by node.
func (n Nodes) InOrder() bool { return slices.IsSorted(n.order) }

// Blocks returns for every node the range of its ranks' blocks of size elements each.
func (n Nodes) Blocks(size int) []Range {
	blocks, lo := make([]Range, len(n.Members)), 0
	for k, members := range n.Members {
		blocks[k] = Range{lo, lo + len(members)*size}
		lo = blocks[k].Hi
	}
	return blocks
}

// Sizes returns the least and the most ranks that a node has.
func (n Nodes) Sizes() (least, most int) {
	least = len(n.Here())
	for _, members := range n.Members {
		least, most = min(least, len(members)), max(most, len(members))
	}
	return least, most
}

// Together reports whether the ranks of a node should send so many bytes each as one message.
func (c Planner) Together(n Nodes, bytes int) bool {
	_, most := n.Sizes()
	return most*bytes <= c.MostGrouped
}

// Rails returns how many rails carry a vector of so many bytes: one if it is short, else as many as the smallest node
// has ranks.
func (c Planner) Rails(n Nodes, bytes int) int {
	if c.choose("nodes", len(n.Members), bytes) == choice.Leaders {
		return 1
	}
	least, _ := n.Sizes()
	return least
}

// Rail returns the ranks of the rail, of so many, that this rank is on: one rank of every node. It is nil if this rank
// is on no rail.
func (n Nodes) Rail(rails int) []int {
	i := mod(n.LocalRank-n.first[n.Node], len(n.Here()))
	if i >= rails {
		return nil
	}
	ranks := make([]int, len(n.Members))
	for k, members := range n.Members {
		ranks[k] = members[(n.first[k]+i)%len(members)]
	}
	return ranks
}

// Leader returns the local rank of this node that is on rail 0.
func (n Nodes) Leader() int { return n.first[n.Node] }

// Slices returns for every rank of this node the slice of r that its rail, of so many, carries. It is empty for a rank
// on no rail.
func (n Nodes) Slices(r Range, rails int) []Range {
	slices := make([]Range, len(n.Here()))
	for local := range slices {
		slices[local] = Range{r.Hi, r.Hi}
		if i := mod(local-n.Leader(), len(slices)); i < rails {
			slices[local] = r.Part(rails, i)
		}
	}
	return slices
}

// Among returns p with ranks[i] in place of rank i. It changes p.
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

// Without returns p without what it moves from and to the given ranks. It changes p.
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
