// Package explain says in words by which algorithm a call is carried out, from the tables of package choice.
package explain

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Group says by which algorithm g carries out op on buffers of so many bytes.
func Group(g *core.Group, op string, bytes int) string {
	return explain(op, bytes, *g.Planner(), func(e *explanation) { e.group(g) })
}

// Environment is Group for the ranks that the environment describes, or for two, on machines that are near each other.
func Environment(op string, bytes int) string {
	ranks, _ := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	ranks = max(ranks, 2)
	rules, err := core.ParseTuning(os.Getenv("GORUN_COMM_TUNE"))
	if err != nil {
		return err.Error() + "\n"
	}
	return explain(op, bytes, plan.NewPlanner(choice.Network, rules), func(e *explanation) {
		e.title("%d ranks; no world is open", ranks)
		if e.has(choice.Memory) {
			e.table("where they share memory", choice.SharedMemory, ranks, bytes)
		}
		e.byMessages("by messages", ranks)
	})
}

// Algorithms returns the names of those among which g chooses for op, in the order of the lengths for which they are
// chosen; none if members are on several machines and share memory there.
func Algorithms(g *core.Group, op string) (names []string) {
	all := choice.Memory
	switch {
	case !g.SharesMemory():
		all = choice.Messages
	case len(g.Placed().Members) > 1:
		return nil
	}
	for _, a := range all.Free(operationName(op)) {
		names = append(names, string(a))
	}
	return names
}

// group explains the operation on g.
func (e *explanation) group(g *core.Group) {
	n, at := g.Size(), g.Placed()
	switch {
	case n == 1:
		e.title("1 rank")
		e.line("a copy, where there is anything to copy")
	case !e.has(choice.Memory):
		e.title("%d ranks", n)
		e.byMessages("by messages, through memory where ranks share it", n)
	case !g.SharesMemory():
		e.title("%d ranks that share no memory", n)
		e.byMessages("by messages", n)
	case len(at.Members) == 1:
		e.title("%d ranks on one machine", n)
		e.inMemory(g.InMemory(), n)
		if !g.TeamOfAll() {
			e.line("That is if they can share memory, which the first collective finds out.")
		}
	default:
		e.title("%d ranks on %d machines", n, len(at.Members))
		e.onNodes(at)
	}
}

// operationName returns op as tables have it: AllReduce, all-reduce and allreduce become all_reduce.
func operationName(op string) string {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace
	for _, name := range explained() {
		if strings.EqualFold(plain(name), plain(op)) {
			return name
		}
	}
	return op
}

// explained returns the names of all operations.
func explained() []string {
	names := append(choice.Messages.Ops(), pointToPoint.Ops()...)
	return slices.DeleteFunc(names, func(name string) bool { return name == aboutNodes })
}

// aboutNodes is the name in choice.Messages that is not an operation.
const aboutNodes = "nodes"

// pointToPoint says how single messages travel.
var pointToPoint = &choice.Table{
	Algorithms: choice.Algorithms{
		{Op: "sendrecv", Algorithm: choice.Eager, What: "sent at once, as far as the receiver has room"},
		{Op: "sendrecv", Algorithm: choice.Rendezvous, What: "sent when the receiver asks for it"},
	},
	Rows: choice.Rows{"sendrecv": {
		{Algorithm: choice.Eager, UpTo: func(int) int { return wire.EagerLimit }}, {Algorithm: choice.Rendezvous},
	}},
}

// An explanation is the text of Explain.
type explanation struct {
	strings.Builder
	op      string
	bytes   int
	planner plan.Planner
}

// explain returns the explanation of op that write writes, or says that there is no such operation.
func explain(op string, bytes int, planner plan.Planner, write func(e *explanation)) string {
	e := explanation{op: operationName(op), bytes: bytes, planner: planner}
	if !slices.Contains(explained(), e.op) {
		return fmt.Sprintf("there is no operation %q: want %s\n", op, strings.Join(explained(), ", "))
	}
	write(&e)
	return e.String()
}

func (e *explanation) has(all choice.Algorithms) bool { return slices.Contains(all.Ops(), e.op) }

func (e *explanation) title(format string, args ...any) {
	e.line("%s of %d bytes, %s", e.op, e.bytes, fmt.Sprintf(format, args...))
}

func (e *explanation) line(format string, args ...any) { fmt.Fprintf(e, format+"\n", args...) }

// table prints the ways of t for the operation, with an arrow to the one that is chosen.
func (e *explanation) table(title string, t *choice.Table, ranks, bytes int) {
	e.ways(title, plan.NewPlanner(t, e.planner.Tuning), e.op, ranks, bytes)
}

// byMessages prints the ways of ranks that exchange messages.
func (e *explanation) byMessages(title string, ranks int) {
	if e.has(pointToPoint.Algorithms) {
		e.table(title, pointToPoint, ranks, e.bytes)
		return
	}
	e.ways(title, e.planner, e.op, ranks, e.bytes)
}

// ways prints the ways of a table.
func (e *explanation) ways(title string, c plan.Planner, op string, ranks, bytes int) {
	from := "built in"
	if c.IsTuned(op, ranks) {
		from = "tuned"
	}
	e.line("%s (%s, %d ranks, %d bytes):", title, from, ranks, bytes)
	e.line("    %6s  %-13s  %s", "up to", "way", "what")
	row := func(arrow, limit string, way choice.Algorithm) {
		e.line("  %s %6s  %-13s  %s", arrow, limit, way, c.What(op, way))
	}
	picked, ways := c.Choose(op, ranks, bytes), c.Ways(op, ranks)
	for _, w := range ways {
		arrow := " "
		if w.Algorithm == picked && bytes <= w.UpTo {
			arrow, picked = ">", "" // a tuning may choose the same way for longer ones too
		}
		row(arrow, choice.Bytes(w.UpTo), w.Algorithm)
	}
	for _, way := range c.Free(op) { // those that only a rule can choose
		if !slices.ContainsFunc(ways, func(w choice.Way) bool { return w.Algorithm == way }) {
			row(" ", "-", way)
		}
	}
}

func (e *explanation) inMemory(c choice.Chooser, ranks int) {
	e.ways("in memory", plan.Planner{Chooser: c}, e.op, ranks, e.bytes)
	if e.op != "barrier" {
		e.line("Buffers of comm.Alloc are used in place where a rank takes %s or more from another.", choice.Bytes(choice.Registered.Least))
	}
}

// inStages says what ranks of a machine do in memory before they exchange slices with other machines, and after that.
var inStages = map[string][2]string{
	"all_reduce":     {"each combines its slice", "they take each other's slices"},
	"reduce":         {"each combines its slice", "the root takes the slices"},
	"broadcast":      {"those of the root's machine take what it has", "the others take each other's slices"},
	"all_gather":     {"they collect their blocks", "they take each other's slices"},
	"reduce_scatter": {"each combines its slice of what every machine gets", "they take their blocks"},
	"barrier":        {"they come to their leader", "it lets them go"},
}

// onNodes prints the stages of a collective of ranks on several machines.
func (e *explanation) onNodes(at plan.Nodes) {
	stage, inSlices := inStages[e.op]
	if !inSlices {
		e.line("%s", blocksOn(e.planner, at, e.op, e.bytes/len(at.Order())))
		return
	}
	rails := e.planner.Rails(at, e.bytes)
	if e.op != "barrier" {
		e.ways("between machines", e.planner, aboutNodes, len(at.Members), e.bytes)
	}
	e.line("1. In memory, ranks of a machine: %s.", stage[0])
	e.ways("2. By messages", e.planner, e.op, len(at.Members), (e.bytes+rails-1)/rails)
	e.line("3. In memory, ranks of a machine: %s.", stage[1])
}

// blocksOn says how blocks of so many bytes travel between machines.
func blocksOn(planner plan.Planner, at plan.Nodes, op string, block int) string {
	together := block
	if op == "all_to_all" {
		_, most := at.Sizes()
		together *= most
	}
	if planner.Together(at, together) {
		return "Blocks are short: those of a machine travel as one message; its ranks collect and take them in memory."
	}
	return "Blocks go straight to where they belong: in memory on the same machine, else by messages."
}
