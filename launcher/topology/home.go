package topology

import (
	"errors"
	"fmt"
	"slices"
)

// homes returns the home node of every local rank. Each has CPUs.
func (m Machine) homes(workers int, gpus []int) ([]int, error) {
	if len(m.CPUs) == 0 {
		return nil, errors.New("there is no CPU to bind workers to")
	}
	if gpus == nil {
		return m.spread(workers), nil
	}
	if len(gpus) != workers {
		return nil, fmt.Errorf("%d workers, but GPUs for %d: each needs one to be bound near it", workers, len(gpus))
	}
	nodes := keys(m.CPUs, CPU.node)
	homes := make([]int, workers)
	for rank, gpu := range gpus {
		name, node := m.gpu(gpu)
		switch {
		case node < 0 && len(nodes) == 1:
			node = nodes[0]
		case node < 0:
			return nil, fmt.Errorf("local rank %d cannot be bound near its GPU: the system does not tell the NUMA node of %s, and there are %d: "+
				"leave the workers unbound, or set its numa_node in /sys", rank, name, len(nodes))
		case !slices.Contains(nodes, node):
			return nil, fmt.Errorf("local rank %d cannot be bound near its GPU: %s is on NUMA node %d, where this process may use no CPU: "+
				"allow it some there, or leave the workers unbound", rank, name, node)
		}
		homes[rank] = node
	}
	return homes, nil
}

// gpu returns the name of a GPU for people, and its node.
func (m Machine) gpu(at int) (name string, node int) {
	if at < 0 || at >= len(m.GPUs) {
		return "a device that it does not list", -1
	}
	g := m.GPUs[at]
	name = fmt.Sprintf("%s GPU %d", g.Vendor, g.Index)
	if g.Bus != "" {
		name += " (" + g.Bus + ")"
	}
	return name, g.Node
}

// spread gives every worker a home, without regard to GPUs, in blocks of local ranks.
func (m Machine) spread(workers int) []int {
	socketOf := map[int]int{} // by node; one on several, as with NUMA switched off, counts to the last
	for _, c := range m.CPUs {
		socketOf[c.Node] = c.Socket
	}
	var homes []int
	sockets := groupBy(m.CPUs, func(c CPU) int { return socketOf[c.Node] })
	for i, n := range apportion(workers, sockets) {
		nodes := groupBy(sockets[i], CPU.node)
		for j, n := range apportion(n, nodes) {
			homes = append(homes, slices.Repeat([]int{nodes[j][0].Node}, n)...)
		}
	}
	return homes
}

// apportion returns how many workers each group of CPUs gets. Each worker goes to the first group with the most
// cores for each of its workers. So no group has more workers than cores as long as there are enough cores.
func apportion(workers int, groups [][]CPU) []int {
	counts := make([]int, len(groups))
	var cores []int
	for _, g := range groups {
		cores = append(cores, coreCount(g))
	}
	for range workers {
		best := 0
		for i := range groups {
			if cores[i]*(counts[best]+1) > cores[best]*(counts[i]+1) {
				best = i
			}
		}
		counts[best]++
	}
	return counts
}
