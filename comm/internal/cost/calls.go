package cost

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

// Plans returns the plans of all ranks for an operation on so many bytes, those of the whole buffer, by the way that c chooses. Elements
// are bytes, and the root is rank 0. inPlace is that of [System.Time]. It returns none if the operation has no plans, or they are too long
// to simulate.
func Plans(c plan.Choices, op string, size, bytes int) (plans []plan.Plan, inPlace bool) {
	return plansUpTo(mostMessages, c, op, size, bytes)
}

// plansUpTo is Plans for at most so many steps.
func plansUpTo(most int, c plan.Choices, op string, size, bytes int) (plans []plan.Plan, inPlace bool) {
	if bytes < 0 || size > most {
		return nil, false
	}
	block := bytes / size
	equal := plan.EqualBlocks(size, block)
	inPlace = true
	var of func(rank int) plan.Plan
	switch op {
	case "all_reduce":
		of = func(r int) plan.Plan { return c.AllReduce(r, size, bytes, 1, false) }
	case "reduce":
		of = func(r int) plan.Plan { return c.Reduce(r, size, bytes, 1, 0, false) }
	case "broadcast":
		of = func(r int) plan.Plan { return c.Broadcast(r, size, bytes, 1, 0) }
	case "all_gather":
		of = func(r int) plan.Plan { return c.AllGather(nil, r, equal, 1) }
	case "reduce_scatter":
		_, inPlace = c.ReduceScatter(nil, 0, equal, 1, false, choice.Any)
		of = func(r int) plan.Plan {
			p, _ := c.ReduceScatter(nil, r, equal, 1, false, choice.Any)
			return p
		}
	case "all_to_all":
		if c.Together(op, size, block) {
			of = func(r int) plan.Plan { return plan.BruckAllToAll(r, size, block) }
			break
		}
		inPlace = false
		of = func(r int) plan.Plan { return plan.PairwiseAllToAll(nil, r, equal, equal) }
	case "gather":
		if c.Together(op, size, block) {
			of = func(r int) plan.Plan { return plan.BinomialGather(r, size, block, 0) }
			break
		}
		inPlace = false
		of = func(r int) plan.Plan { return plan.LinearGather(nil, r, 0, block, equal) }
	case "scatter":
		if c.Together(op, size, block) {
			of = func(r int) plan.Plan { return plan.BinomialScatter(r, size, block, 0) }
			break
		}
		inPlace = false
		of = func(r int) plan.Plan { return plan.LinearScatter(nil, r, 0, block, equal) }
	case "scan":
		of = func(r int) plan.Plan { return plan.DoublingScan(r, size, bytes) }
	case "barrier":
		of = func(r int) plan.Plan { return c.Barrier(r, size) }
	default:
		return nil, false
	}
	steps := 0
	for r := range size {
		plans = append(plans, of(r))
		if steps += len(plans[r]); steps > most {
			return nil, false
		}
	}
	return plans, inPlace
}

// OnRails returns what n rails do at the same time, each of which carries out plans between its ranks of all machines: the ranks of rail i
// come after those of rail i-1. It returns none if they are too long to simulate.
func OnRails(plans []plan.Plan, n int) []plan.Plan {
	steps := 0
	for _, p := range plans {
		steps += n * len(p)
	}
	if steps > mostMessages {
		return nil
	}
	all := plans
	for rail := 1; rail < n; rail++ {
		ranks := make([]int, len(plans))
		for r := range ranks {
			ranks[r] = rail*len(plans) + r
		}
		for _, p := range plans {
			all = append(all, slices.Clone(p).Among(ranks))
		}
	}
	return all
}
