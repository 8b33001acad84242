package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/testing/protocoltest"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/comm/internal/wire"
)

// TestProtocol compares what ranks do alike with what they did when the protocol got its number.
func TestProtocol(t *testing.T) {
	var now strings.Builder
	plans(t, &now)
	unequalPlans(&now)
	choices(&now)
	frames(&now)
	calls(t, &now)
	numbers(&now)
	protocoltest.Compare(t, now.String())
}

// steps returns the steps of a plan: what goes to which rank, and what comes from which and how it is merged.
func steps(p plan.Plan) string {
	var text []string
	for _, s := range p {
		one := ""
		if s.To != plan.None {
			one = fmt.Sprintf("→%d[%d:%d]", s.To, s.Send.Lo, s.Send.Hi)
		}
		if s.From != plan.None {
			one += fmt.Sprintf("←%d[%d:%d]%s", s.From, s.Recv.Lo, s.Recv.Hi, [...]string{"", " swap", " left", " right"}[s.Merge])
		}
		text = append(text, one)
	}
	return strings.Join(text, ", ")
}

// sends returns how many messages of which lengths a plan sends.
func sends(p plan.Plan) string {
	count, shortest, longest := 0, 0, 0
	for _, s := range p {
		if n := s.Send.Len(); s.To != plan.None {
			count, longest = count+1, max(longest, n)
			if shortest = min(shortest, n); count == 1 {
				shortest = n
			}
		}
	}
	return fmt.Sprintf("%d of %d to %d bytes", count, shortest, longest)
}

// plans prints the plans of each algorithm for a few elements, and how many messages it sends of long vectors.
func plans(t *testing.T, out *strings.Builder) {
	for _, l := range choice.Messages {
		rule, err := choice.Parse(l.Op+"="+string(l.Algorithm), choice.Messages)
		if err != nil {
			t.Fatal(err)
		}
		c := plan.NewPlanner(choice.Network, rule)
		for _, size := range []int{3, 4, 5} {
			fmt.Fprintf(out, "%s=%s, %d ranks, %d bytes\n", l.Op, l.Algorithm, size, 3*size)
			for r := range size {
				fmt.Fprintf(out, "  rank %d: %s\n", r, steps(planOf(c, l.Op, r, size, 3*size)))
			}
		}
		for _, bytes := range []int{100_000, 5 << 20} {
			fmt.Fprintf(out, "%s=%s, 5 ranks, %d bytes: rank 1 sends %s\n", l.Op, l.Algorithm, bytes, sends(planOf(c, l.Op, 1, 5, bytes)))
		}
	}
}

// planOf returns the plan of a rank for a buffer of so many bytes, in equal blocks. The root is rank 0. Operations
// without plans have none.
func planOf(c plan.Planner, op string, rank, size, bytes int) (p plan.Plan) {
	block := bytes / size
	equal := plan.EqualBlocks(size, block)
	switch op {
	case "all_reduce":
		return c.AllReduce(rank, size, bytes, 1, false)
	case "reduce":
		return c.Reduce(rank, size, bytes, 1, 0, false)
	case "broadcast":
		return c.Broadcast(rank, size, bytes, 1, 0)
	case "all_gather":
		return c.AllGather(nil, rank, equal, 1)
	case "reduce_scatter":
		p, _ = c.ReduceScatter(nil, rank, equal, 1, false, choice.Any)
		return p
	case "scan":
		return plan.DoublingScan(rank, size, bytes)
	case "barrier":
		return c.Barrier(rank, size)
	case "all_to_all":
		return c.AllToAll(rank, size, block, 1, 0)
	case "gather":
		return c.Gather(rank, size, block, 1, 0)
	case "scatter":
		return c.Scatter(rank, size, block, 1, 0)
	}
	return nil
}

// unequalPlans prints the plans for blocks of different lengths, for operations that do not commute, and for a root in
// the middle.
func unequalPlans(out *strings.Builder) {
	c, size := plan.NewPlanner(choice.Network, nil), 4
	for _, elem := range []int{1, 200_000} {
		blocks := []plan.Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 2}, {Lo: 2, Hi: 7}, {Lo: 7, Hi: 8}}
		for r := range size {
			show := func(what string, p plan.Plan) {
				fmt.Fprintf(out, "%s of 2, 0, 5 and 1 × %d bytes, rank %d: %s\n", what, elem, r, steps(p))
			}
			gathered, gathersJoined := c.AllGatherV(nil, r, blocks, elem, 16<<10)
			scattered, scattersJoined := c.ReduceScatter(nil, r, blocks, elem, false, 16<<10)
			inOrder, _ := c.ReduceScatter(nil, r, blocks, elem, true, 16<<10)
			show(fmt.Sprintf("all_gather, joined %t,", gathersJoined), gathered)
			show(fmt.Sprintf("reduce_scatter, joined %t,", scattersJoined), scattered)
			show("reduce_scatter in order", inOrder)
			show("all_reduce in order", c.AllReduce(r, size, 8, elem, true))
			show("reduce in order to 2", c.Reduce(r, size, 8, elem, 2, true))
			show("reduce to 2", c.Reduce(r, size, 8, elem, 2, false))
			show("broadcast from 2", c.Broadcast(r, size, 8, elem, 2))
			show("exscan", plan.DoublingExScan(r, size, 8))
			show("gather to 1", plan.LinearGather(nil, r, 1, blocks[r].Len(), blocks))
			show("scatter from 1", plan.LinearScatter(nil, r, 1, blocks[r].Len(), blocks))
		}
	}
}

// choices prints which algorithms are chosen.
func choices(out *strings.Builder) {
	for _, of := range []struct {
		name  string
		table *choice.Table
	}{{"between machines", choice.Network}, {"far", choice.Far}, {"on one machine", choice.Near}, {"in memory", choice.SharedMemory}, {"in memory, with processors", choice.OwnProcessors}} {
		for _, op := range of.table.Ops() {
			last := ""
			for _, ranks := range []int{2, 3, 4, 5, 8, 16, 17, 32, 64, 100, 1000} {
				if now := fmt.Sprint(plan.NewPlanner(of.table, nil).Ways(op, ranks)); now != last {
					fmt.Fprintf(out, "%s, %s, from %d ranks: %s\n", of.name, op, ranks, now)
					last = now
				}
			}
		}
	}
	fmt.Fprintf(out, "chunks of %d and %d bytes\n", choice.ChunkSize, choice.Network.OwnChunk)
}

// frames prints the bytes of frames.
func frames(out *strings.Builder) {
	for kind := wire.Eager; ; kind++ {
		h := wire.Header{Kind: kind, Tag: 1, Context: 2, Size: 3, ID: 4, Whole: 5}
		h.Seq, h.Before = 6, 7
		h.Call = call.Call{Kind: call.KindReduce, Type: 8, Reduce: 9, Root: 10, Count: 11, Detail: 12}
		frame := h.Append(nil)
		if _, err := wire.Parse(frame); err != nil && strings.Contains(err.Error(), "unknown kind") {
			break
		}
		fmt.Fprintf(out, "frame %x\n", frame)
	}
	fmt.Fprintf(out, "limits of frames: %d, %d\n", wire.EagerLimit, wire.LongestChunk)
}

// calls prints the messages of a few calls of three ranks, with the headers that they have between two ranks.
func calls(t *testing.T, out *strings.Builder) {
	for _, c := range []simulation.Call{
		{Kind: call.KindBarrier}, {Kind: call.KindAllReduce, Count: 3}, {Kind: call.KindBroadcast, Count: 5, Root: 1},
		{Kind: call.KindReduce, Count: 25, Ordered: true}, {Kind: call.KindReduceScatterV, Count: 4}, {Kind: call.KindAllGather, Count: 2},
		{Kind: call.KindGatherV, Count: 4}, {Kind: call.KindAllToAllV, Count: 4}, {Kind: call.KindExScan, Count: 1},
		{Kind: call.KindAllReduceCoalesced, Count: 2},
	} {
		sent := map[[2]int][]byte{}
		config := simulation.Config{Size: 3, Seed: 1, ChunkSize: 100, Sent: func(from, to int, b []byte) {
			sent[[2]int{from, to}] = append(sent[[2]int{from, to}], b...)
		}}
		simulation.InOrder(t, config, func(w *simulation.World) {
			for _, err := range w.Run(c.Do) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		for from := range 3 {
			for to := range 3 {
				for rest := sent[[2]int{from, to}]; len(rest) > 0; {
					h, err := wire.Parse(rest[:wire.HeaderSize])
					if err != nil {
						t.Fatal(err)
					}
					rest = rest[wire.HeaderSize:]
					if h.IsMessage() {
						rest = rest[h.Size:]
						fmt.Fprintf(out, "%v: %d → %d: frame %d, tag %d, call %v #%d, %d of %d bytes, history %x\n",
							c, from, to, h.Kind, h.Tag, h.Call, h.Seq, h.Size, h.Whole, h.Before)
					}
				}
			}
		}
	}
}

// numbers prints the numbers of calls, types and operations.
func numbers(out *strings.Builder) {
	for kind := call.KindSend; !strings.Contains(kind.String(), "("); kind++ {
		fmt.Fprintf(out, "call %d: %v, in memory: %t\n", kind, kind, core.InMemory(kind))
	}
	for typ := reduce.Int8; ; typ++ {
		name := typ.String()
		if strings.Contains(name, "(") {
			break
		}
		fmt.Fprintf(out, "type %d: %s\n", typ, name)
	}
	for op := reduce.Sum; op <= reduce.LastOp; op++ {
		fmt.Fprintf(out, "operation %d: %v\n", op, op)
	}
}
