// Package bench measures the calls of package comm, in the way and with the table of nccl-tests.
//
// A [Config] says what is measured. The caller starts gorun's own binary as the workers of a job, with that Config as
// their argument, and each of them calls [Work]:
//
//	for every experiment (operation, element type, reduction, root)
//	    for every size
//	        for every form (out of place, in place)
//	            check:    fill the buffers, call, count the elements that are wrong
//	            measure:  warm up, meet, call n times; the slowest rank's mean counts
//
// Ranks decide from shared results what they call next, so nobody has to tell them. Rank 0 prints.
package bench

import (
	"fmt"
	"slices"
)

// A Config is what to measure. The workers get it as JSON.
type Config struct {
	Operations []string // names of Operations
	Sizes      Sizes
	Type       string // one of Types, or All
	Op         string // one of Ops, or All
	Root       int    // or AllRoots
	Iterations int    // calls that are measured; 0: as many as take a tenth of a second
	Warmup     int    // calls before them
	Checks     int    // how often the result is checked
	P99        bool   // percentiles, too
	Dirty      bool   // every rank rewrites what it gives, before each call
	Alloc      bool   // buffers are comm.Alloc's
	JSON       bool
	Transport  string // as comm.WithTransport has it
	Tune       bool   // which way is fastest, instead of how fast it is
	Explain    bool   // by which way, and from what it is chosen
}

// All stands for every type or reduction, AllRoots for every rank.
const (
	All      = "all"
	AllRoots = -1
)

// The operations.
const (
	allReduce     = "all_reduce"
	reduce        = "reduce"
	broadcast     = "broadcast"
	allGather     = "all_gather"
	reduceScatter = "reduce_scatter"
	allToAll      = "all_to_all"
	gather        = "gather"
	scatter       = "scatter"
	sendRecv      = "sendrecv"
	pingPong      = "pingpong"
	barrier       = "barrier"
)

// An operation is a call of package comm. Its size is that of the largest buffer of any rank.
type operation struct {
	name    string
	about   string
	reduces bool
	rooted  bool
	blocks  bool // the buffer has a block for every rank
	out, in bool // there is a form out of place, or in place
	bus     func(ranks float64) float64
}

// moves reports whether the operation moves data. Otherwise it has no size, and nothing in it can be wrong.
func (o *operation) moves() bool { return o.bus != nil }

// The bus bandwidth is what each rank's link to the others would carry if nothing was sent twice.
func twice(n float64) float64  { return 2 * (n - 1) / n }
func others(n float64) float64 { return (n - 1) / n }
func once(float64) float64     { return 1 }

var operations = []operation{
	{name: allReduce, about: "every rank gets the reduction over all ranks", reduces: true, in: true, bus: twice},
	{name: reduce, about: "the root gets the reduction over all ranks", reduces: true, rooted: true, in: true, bus: once},
	{name: broadcast, about: "every rank gets the data of the root", rooted: true, in: true, bus: once},
	{name: allGather, about: "every rank gets the blocks of all ranks", blocks: true, out: true, in: true, bus: others},
	{name: reduceScatter, about: "every rank gets one block of the reduction", reduces: true, blocks: true, out: true, in: true, bus: others},
	{name: allToAll, about: "every rank gets one block from each rank", blocks: true, out: true, bus: others},
	{name: gather, about: "the root gets the blocks of all ranks", rooted: true, blocks: true, out: true, in: true, bus: others},
	{name: scatter, about: "every rank gets one block from the root", rooted: true, blocks: true, out: true, in: true, bus: others},
	{name: sendRecv, about: "every rank sends to the next one and receives from the previous one", out: true, bus: once},
	{name: pingPong, about: "rank 0 sends to rank 1, which sends back; the time is half the round trip", out: true, bus: once},
	{name: barrier, about: "every rank waits for all ranks", out: true},
}

// Operations are the names of all operations.
func Operations() (names []string) {
	for _, o := range operations {
		names = append(names, o.name)
	}
	return names
}

func operationNamed(name string) operation { return operations[slices.Index(Operations(), name)] }

// About describes an operation in a few words.
func About(name string) string { return operationNamed(name).about }

// Ops are the names of the reductions.
var Ops = []string{"sum", "prod", "min", "max", "avg"}

// A UsageError says what is wrong with a Config.
type UsageError struct{ why string }

func (e *UsageError) Error() string { return e.why }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Check checks c for this number of ranks. If ranks is 0, the number is not known yet.
func (c *Config) Check(ranks int) error {
	switch {
	case c.Sizes.Min > c.Sizes.Max:
		return usagef("the smallest size, %d, is larger than the largest, %d", c.Sizes.Min, c.Sizes.Max)
	case c.Sizes.Max > maxSize:
		return usagef("size %d: want at most %d", c.Sizes.Max, int64(maxSize))
	case c.Tune && c.Explain:
		return usagef("--tune and --explain print different things: leave out one of them")
	case c.JSON && (c.Tune || c.Explain):
		return usagef("--tune and --explain do not print JSON: leave out --json")
	case ranks == 1 && slices.Equal(c.Operations, []string{pingPong}):
		return usagef("%s needs %d ranks", pingPong, pair)
	}
	for _, name := range c.Operations {
		o := operationNamed(name)
		switch {
		case o.reduces && len(c.experimentsOf(o, 1)) == 0:
			return usagef("%s has no meaning for %s", c.Op, c.Type)
		case o.rooted && ranks > 0 && c.Root >= ranks:
			return usagef("root %d: there are only %d ranks", c.Root, ranks)
		}
	}
	return nil
}

// pair is the number of ranks that pingPong needs. With fewer ranks, it is left out.
const pair = 2

// An experiment is an operation with all of its parameters but the size.
type experiment struct {
	operation
	typ  dataType
	op   string // empty: it does not reduce
	root int    // -1: it has none

	shared bool // buffers are comm.Alloc's
}

// experiments returns the experiments that c asks for. It leaves out combinations of type and reduction that have no meaning.
func (c *Config) experiments(ranks int) (list []experiment) {
	for _, name := range c.Operations {
		if name != pingPong || ranks >= pair {
			list = append(list, c.experimentsOf(operationNamed(name), ranks)...)
		}
	}
	return list
}

func (c *Config) experimentsOf(o operation, ranks int) (list []experiment) {
	for _, typ := range c.types(o) {
		for _, op := range c.ops(o, typ) {
			for _, root := range c.roots(o, ranks) {
				list = append(list, experiment{o, typ, op, root, c.Alloc})
			}
		}
	}
	return list
}

func (c *Config) types(o operation) (list []dataType) {
	if !o.moves() {
		return []dataType{noType}
	}
	for _, t := range dataTypes {
		if c.Type == All || c.Type == t.name {
			list = append(list, t)
		}
	}
	return list
}

func (c *Config) ops(o operation, typ dataType) (list []string) {
	if !o.reduces {
		return []string{""}
	}
	for _, op := range Ops {
		least := op == "min" || op == "max"
		if (c.Op == All || c.Op == op) && (!typ.unordered || !least) {
			list = append(list, op)
		}
	}
	return list
}

func (c *Config) roots(o operation, ranks int) (list []int) {
	switch {
	case !o.rooted:
		return []int{-1}
	case c.Root != AllRoots:
		return []int{c.Root}
	}
	for r := range ranks {
		list = append(list, r)
	}
	return list
}
