package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// allToAllOn is the task of bringing block r of in to rank r, and block r of out from there. Every byte goes to another node
// once, as one message for every two ranks or, if blocks are short, for every two nodes.
func (c *collective) allToAllOn(n *nodes, out, in []byte) task {
	size := len(in) / c.g.Size()
	if _, most := n.Sizes(); n.Together(most * size) {
		return c.allToAllByLeaders(n, out, in, size)
	}
	return c.allToAllStraight(n, out, in, size)
}

// allToAllStraight brings blocks straight where they belong: in memory to ranks of this node, and to others as messages.
func (c *collective) allToAllStraight(n *nodes, out, in []byte, size int) task {
	given := pick(in, n.Here(), size)
	got := given
	if n.team != nil {
		got = make([]byte, len(given))
	}
	blocks := equalBlocks(c.g.Size(), size/c.elem)
	return task{
		stages: append(
			n.inMemory(func(t *shm.Team) error { return t.AllToAll(got, given) }),
			task{
				plan: plan.PairwiseAllToAll(c.g.rank, blocks, blocks).Without(n.Here()),
				src:  vector{buf: in}, dst: vector{buf: out},
			},
		),
		end: func(*collective) { put(out, n.Here(), size, got) },
	}
}

// allToAllByLeaders lets leaders collect in of the ranks of their nodes in memory, exchange blocks, and deal them out in memory.
func (c *collective) allToAllByLeaders(n *nodes, out, in []byte, size int) task {
	here, whole := len(n.Here()), len(in)
	all, dealt := in, out // of the ranks here, one after the other
	if n.team != nil && n.Place == n.Leader() {
		all, dealt = make([]byte, here*whole), make([]byte, here*whole)
	}
	stages := n.inMemory(func(t *shm.Team) error { return t.Gather(all, in, n.Leader()) })
	if n.Place == n.Leader() {
		packed, arrived := make([]byte, 0, here*whole), make([]byte, here*whole)
		pack := func(*collective) { // for every node, what each rank here has for the ranks there
			for _, members := range n.Members {
				for from := range here {
					packed = append(packed, pick(all[from*whole:], members, size)...)
				}
			}
		}
		deal := func(*collective) { // from every node, what each rank there has for the ranks here
			rest := arrived
			for _, from := range n.Order() {
				for to := range here {
					copy(dealt[to*whole+from*size:][:size], rest)
					rest = rest[size:]
				}
			}
		}
		stages = append(stages, task{end: pack})
		stages = append(stages, n.onRail(1, func() task {
			blocks := n.Blocks(here * size / c.elem)
			return task{
				plan: plan.PairwiseAllToAll(n.Node, blocks, blocks),
				src:  vector{buf: packed[:here*whole]}, dst: vector{buf: arrived}, end: deal,
			}
		})...)
	}
	return task{stages: append(stages, n.inMemory(func(t *shm.Team) error { return t.Scatter(out, dealt, n.Leader()) })...)}
}
