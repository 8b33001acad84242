package protocol_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/internal/testing/protocoltest"
	"github.com/gorun/gorun/comm/internal/wire"
)

// TestProtocol compares what ranks do alike with what they did when the protocol got its number.
func TestProtocol(t *testing.T) {
	var now strings.Builder
	plans(t, &now)
	unequalPlans(&now)
	choices(&now)
	frames(&now)
	numbers(&now)
	protocoltest.Compare(t, now.String())
}

// sum returns a hash of what %v prints.
func sum(of any) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%v", of)
	return fmt.Sprintf("%016x", h.Sum64())
}

var sizes = []int{2, 3, 4, 5, 6, 7, 8, 9, 16, 17}

// plans prints a sum of the plans of each algorithm, for short and long vectors.
func plans(t *testing.T, out *strings.Builder) {
	for _, l := range plan.Ways {
		rule, err := choice.Parse(l.Op+"="+l.Way, plan.Ways)
		if err != nil {
			t.Fatal(err)
		}
		c := plan.NewChoices(plan.Ways, rule)
		for _, size := range sizes {
			var all []any
			for _, bytes := range []int{0, 1, 8, 100, 1000, 4 << 10, 100_000, 1 << 20, 5 << 20} {
				for r := range size {
					all = append(all, planOf(c, l.Op, r, size, bytes))
				}
			}
			fmt.Fprintf(out, "%s=%s, %d ranks: %s\n", l.Op, l.Way, size, sum(all))
		}
	}
}

// planOf returns the plan of a rank for a buffer of so many bytes, in equal blocks. The root is rank 0. Operations
// without plans have none.
func planOf(c plan.Choices, op string, rank, size, bytes int) (p plan.Plan) {
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
		if c.Together(op, size, block) {
			return plan.BruckAllToAll(rank, size, block)
		}
		return plan.PairwiseAllToAll(nil, rank, equal, equal)
	case "gather":
		if c.Together(op, size, block) {
			return plan.BinomialGather(rank, size, block, 0)
		}
		return plan.LinearGather(nil, rank, 0, block, equal)
	case "scatter":
		if c.Together(op, size, block) {
			return plan.BinomialScatter(rank, size, block, 0)
		}
		return plan.LinearScatter(nil, rank, 0, block, equal)
	}
	return nil
}

// unequalPlans prints sums of the plans for blocks of different lengths, for operations that do not commute, and for
// several roots.
func unequalPlans(out *strings.Builder) {
	c := plan.NewChoices(plan.Ways, nil)
	for _, size := range sizes {
		for _, longest := range []int{10, 10_000, 1_000_000} {
			blocks, n := make([]plan.Range, size), 0
			for i := range blocks {
				length := (i * 7 % 5) * longest / 4 / (i + 1)
				blocks[i], n = plan.Range{Lo: n, Hi: n + length}, n+length
			}
			var all []any
			for r := range size {
				gather, joined := c.AllGatherV(nil, r, blocks, 4, 16<<10)
				scatter, whole := c.ReduceScatter(nil, r, blocks, 4, false, 16<<10)
				inOrder, _ := c.ReduceScatter(nil, r, blocks, 4, true, 16<<10)
				all = append(all, gather, joined, scatter, whole, inOrder, c.AllReduce(r, size, n, 4, true), c.Reduce(r, size, n, 4, size-1, true),
					c.Reduce(r, size, n, 4, size-1, false), c.Broadcast(r, size, n, 4, size-1), plan.DoublingExScan(r, size, n),
					plan.LinearGather(nil, r, 1, blocks[r].Len(), blocks), plan.LinearScatter(nil, r, 1, blocks[r].Len(), blocks))
			}
			fmt.Fprintf(out, "unequal blocks of up to %d, %d ranks: %s\n", longest, size, sum(all))
		}
	}
}

// choices prints which algorithms are chosen.
func choices(out *strings.Builder) {
	for _, of := range []struct {
		name  string
		table choice.Table
	}{{"between machines", plan.Ways}, {"far", plan.WaysFar}, {"on one machine", plan.WaysNearby}, {"in memory", shm.Ways}, {"in memory, with processors", shm.WaysWithProcessors}} {
		ops := map[string]bool{}
		for _, l := range of.table {
			if ops[l.Op] {
				continue
			}
			ops[l.Op] = true
			for _, ranks := range []int{2, 3, 4, 5, 8, 16, 17, 32, 64, 100, 1000} {
				fmt.Fprintf(out, "%s, %s, %d ranks: %v\n", of.name, l.Op, ranks, plan.NewChoices(of.table, nil).Choice(l.Op, ranks))
			}
		}
	}
	fmt.Fprintf(out, "chunks of %d and %d bytes\n", plan.ChunkSize, plan.NetworkChunkSize)
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

// numbers prints the numbers of calls, types and operations.
func numbers(out *strings.Builder) {
	for kind := call.KindSend; !strings.Contains(kind.String(), "("); kind++ {
		fmt.Fprintf(out, "call %d: %v, in memory: %t\n", kind, kind, kind.UsesMemory())
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
