package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Policy says which CPUs a worker gets, relative to its home. The package comment explains each.
type Policy string

// The policies, by torchrun's names.
const (
	Node        Policy = "node"
	Socket      Policy = "socket"
	Exclusive   Policy = "exclusive"
	CoreComplex Policy = "core-complex"
)

// Policies are all policies.
var Policies = []Policy{Node, Socket, Exclusive, CoreComplex}

// Binding is where a worker runs.
type Binding struct {
	CPUs  []int // sorted, at least one
	Nodes []int // NUMA nodes of these CPUs, sorted
}

// Bind returns the binding of every local rank to CPUs of m. gpus are their GPUs, each by where it is in m.GPUs or -1
// if that is not known; nil: the workers use none. The error is one line that says what to do.
func Bind(m Machine, p Policy, workers int, gpus []int) ([]Binding, error) {
	divide, ok := dividers[p]
	if !ok {
		return nil, fmt.Errorf("no such binding %q: want %s", string(p), names(Policies))
	}
	homes, err := m.homes(workers, gpus)
	if err != nil {
		return nil, err
	}
	bindings := make([]Binding, workers)
	for _, home := range keys(m.CPUs, CPU.node) {
		ranks := ranksAt(homes, home)
		shares, err := divide(m, home, len(ranks))
		if err != nil {
			return nil, err
		}
		for i, rank := range ranks {
			bindings[rank] = bindingTo(shares[i])
		}
	}
	return bindings, nil
}

// ranksAt returns the local ranks with this home.
func ranksAt(homes []int, home int) []int {
	var ranks []int
	for rank, h := range homes {
		if h == home {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// dividers return the shares of n workers whose home is the given node of m, which has CPUs.
var dividers = map[Policy]func(m Machine, home, n int) ([][]CPU, error){
	Node:        wholeNode,
	Socket:      wholeSocket,
	Exclusive:   ownCores,
	CoreComplex: inTurn,
}

func wholeNode(m Machine, home, n int) ([][]CPU, error) {
	return slices.Repeat([][]CPU{m.onNode(home)}, n), nil
}

func wholeSocket(m Machine, home, n int) ([][]CPU, error) {
	sockets := keys(m.onNode(home), CPU.socket)
	nodes := keys(m.where(func(c CPU) bool { return slices.Contains(sockets, c.Socket) }), CPU.node)
	return slices.Repeat([][]CPU{m.where(func(c CPU) bool { return slices.Contains(nodes, c.Node) })}, n), nil
}

func ownCores(m Machine, home, n int) ([][]CPU, error) {
	var cores [][]CPU // those that share a cache side by side
	for _, group := range groupBy(m.onNode(home), CPU.l3) {
		cores = append(cores, groupBy(group, CPU.core)...)
	}
	if len(cores) < n {
		return nil, fmt.Errorf("no core for each worker: %s belong to NUMA node %d, where this process may use %s: "+
			"start fewer workers, or let them share with the policy %s", count(n, "worker"), home, count(len(cores), "physical core"), Node)
	}
	shares := make([][]CPU, n)
	for i := range shares {
		mine := len(cores) / (n - i)
		if len(cores)%(n-i) > 0 {
			mine++
		}
		shares[i], cores = slices.Concat(cores[:mine]...), cores[mine:]
	}
	return shares, nil
}

func inTurn(m Machine, home, n int) ([][]CPU, error) {
	complexes := groupBy(m.onNode(home), CPU.l3)
	slices.SortStableFunc(complexes, func(a, b []CPU) int { return cmp.Compare(len(b), len(a)) })
	shares := make([][]CPU, n)
	for i := range shares {
		shares[i] = complexes[i%len(complexes)]
	}
	return shares, nil
}

func bindingTo(cpus []CPU) Binding {
	return Binding{CPUs: keys(cpus, func(c CPU) int { return c.ID }), Nodes: keys(cpus, CPU.node)}
}

// keys returns the distinct keys of CPUs, sorted.
func keys(cpus []CPU, key func(CPU) int) []int {
	var all []int
	for _, c := range cpus {
		all = append(all, key(c))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func names(policies []Policy) string {
	var all []string
	for _, p := range policies {
		all = append(all, string(p))
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
