package choice

import "slices"

// An Algorithm is a way to carry out an operation, as users name it.
type Algorithm string

// The algorithms.
const (
	Doubling      Algorithm = "doubling"
	Halving       Algorithm = "halving"
	Ring          Algorithm = "ring"
	Bidirectional Algorithm = "bidirectional"
	Pairwise      Algorithm = "pairwise"
	Binomial      Algorithm = "binomial"
	Pipeline      Algorithm = "pipeline"
	Linear        Algorithm = "linear"
	Bruck         Algorithm = "bruck"
	Dissemination Algorithm = "dissemination"
	Leaders       Algorithm = "leaders"
	Rails         Algorithm = "rails"
	LL            Algorithm = "ll"
	Flat          Algorithm = "flat"
	Shared        Algorithm = "shared"
	Slots         Algorithm = "slots"
	Eager         Algorithm = "eager"
	Rendezvous    Algorithm = "rendezvous"
)

// isFixed reports whether ranks use a wherever they can, and no tuning overrules that.
func (a Algorithm) isFixed() bool { return a == LL || a == Eager || a == Rendezvous }

// Algorithms has all algorithms of some operations.
type Algorithms []struct {
	Op        string
	Algorithm Algorithm
	What      string // explains the algorithm of this operation to users
}

// Messages are the algorithms with messages. The operation "nodes" is about what nodes exchange of the results that each
// has made in memory.
var Messages = Algorithms{
	{"all_reduce", Doubling, "recursive doubling: fewest steps, whole vectors"},
	{"all_reduce", Halving, "recursive halving and doubling: fewest bytes, few steps"},
	{"all_reduce", Ring, "ring reduce-scatter and all-gather: fewest bytes, between neighbours only"},
	{"all_reduce", Bidirectional, "ring in both directions, with half of the vector each"},
	{"all_reduce", Pairwise, "pairwise exchange of whole vectors: one latency"},
	{"reduce", Binomial, "binomial tree"},
	{"reduce", Pipeline, "from neighbour to neighbour in short messages, which overlap"},
	{"reduce", Linear, "each vector straight to root: one latency"},
	{"broadcast", Binomial, "binomial tree"},
	{"broadcast", Pipeline, "from neighbour to neighbour in short messages, which overlap"},
	{"broadcast", Linear, "straight from root to each rank: one latency"},
	{"all_gather", Doubling, "recursive doubling: fewest messages"},
	{"all_gather", Bruck, "Bruck: fewest steps"},
	{"all_gather", Ring, "ring: between neighbours only"},
	{"all_gather", Bidirectional, "ring in both directions, with half of every block each"},
	{"all_gather", Pairwise, "pairwise exchange, each block straight to every rank: one latency"},
	{"reduce_scatter", Halving, "recursive halving: fewest steps"},
	{"reduce_scatter", Pairwise, "pairwise exchange: each block straight to its owner"},
	{"reduce_scatter", Pipeline, "ring in short messages, which overlap: between neighbours only"},
	{"all_to_all", Bruck, "Bruck: blocks travel together, by way of other ranks"},
	{"all_to_all", Pairwise, "pairwise exchange: each block straight to where it belongs"},
	{"gather", Binomial, "binomial tree: blocks travel together"},
	{"gather", Linear, "each block straight to root"},
	{"scatter", Binomial, "binomial tree: blocks travel together"},
	{"scatter", Linear, "each block straight from root"},
	{"barrier", Dissemination, "dissemination: over distances that double"},
	{"barrier", Pairwise, "a message from each rank to every other one: one latency"},
	{"nodes", Leaders, "one rank of each node carries the vector: each message has a cost of its own"},
	{"nodes", Rails, "every rank of a node carries its slice of the vector"},
	{"scan", Doubling, "recursive doubling, in order of rank"},
}

// Memory are the algorithms of ranks that share memory. Long buffers of comm.Alloc are used in place instead.
var Memory = Algorithms{
	{"all_reduce", LL, oneOrFewLines},
	{"all_reduce", Flat, "every rank combines all, through slots"},
	{"all_reduce", Shared, "every rank combines its slice: reduce-scatter and all-gather through slots"},
	{"reduce", LL, oneOrFewLines},
	{"reduce", Flat, "the root combines all, through slots"},
	{"reduce", Shared, "every rank combines its slice, of which the root takes the results from slots"},
	{"broadcast", LL, oneOrFewLines},
	{"broadcast", Slots, "ranks read from the root's slots"},
	{"all_gather", LL, oneOrFewLines},
	{"all_gather", Slots, "ranks read from each other's slots"},
	{"reduce_scatter", LL, oneOrFewLines},
	{"reduce_scatter", Slots, "every rank combines its block out of the others' slots"},
	{"all_to_all", LL, oneOrFewLines},
	{"all_to_all", Slots, "ranks read their blocks from each other's slots"},
	{"gather", LL, oneOrFewLines},
	{"gather", Slots, "the root reads from slots"},
	{"scatter", LL, oneOrFewLines},
	{"scatter", Slots, "ranks read their blocks from the root's slots"},
	{"barrier", LL, "ranks read empty LL messages from each other"},
	{"barrier", Dissemination, "dissemination: over distances that double"},
}

const oneOrFewLines = "low latency: data and flag in one or a few cache lines"

// What explains the algorithm a of op. It is empty if there is none.
func (all Algorithms) What(op string, a Algorithm) string {
	for i := range all {
		if all[i].Op == op && all[i].Algorithm == a {
			return all[i].What
		}
	}
	return ""
}

// Free returns the algorithms of op that a tuning may name.
func (all Algorithms) Free(op string) (free []Algorithm) {
	for i := range all {
		if all[i].Op == op && !all[i].Algorithm.isFixed() {
			free = append(free, all[i].Algorithm)
		}
	}
	return free
}

// Ops returns the operations.
func (all Algorithms) Ops() (ops []string) {
	for i := range all {
		if !slices.Contains(ops, all[i].Op) {
			ops = append(ops, all[i].Op)
		}
	}
	return ops
}
