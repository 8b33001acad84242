package comm_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
)

func ExampleIAllReduce() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		layers := [][]float32{{1, 2}, {3}, {4, 5, 6}}
		var works []*comm.Work
		for _, grads := range layers { // as the backward pass gets to them
			works = append(works, comm.IAllReduce(world, grads, comm.Sum))
		}
		for _, work := range works { // before the optimizer's step
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println(layers)
		}
		return nil
	})
	// Output: [[2 4] [6] [8 10 12]]
}

// Every collective has an I-form. Its calls on one group are carried out in order, so the results here are ready once
// the last one has ended.
func ExampleWork_Wait() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		r, all := world.Rank(), []int{10, 11, 12}
		sum, last, scan, scanTo, below, belowTo := []int{r}, []int{r}, []int{1}, []int{0}, []int{1}, []int{0}
		total, most, mine, share, part, root := []int{0}, []int{0}, []int{0}, []int{0}, []int{0}, []int{r + 5}
		shares, parts := [][]int{{1, 1}, {2}, {}}, [][]int{{1}, {2}, {3}}
		shareV, partV := make([]int, len(shares[r])), []int{0}
		gathered, exchanged := make([]int, 3), make([]int, 3)
		gatheredV, onRoot, onRootV := [][]int{{0}, {0}, {0}}, make([]int, 3), [][]int{{0}, {0}, {0}}
		ones := []int{1, 1, 1}
		exchangedV, exchangedW := make([]int, 3), [][]int{{0}, {0}, {0}}
		works := []*comm.Work{
			comm.IReduce(world, sum, comm.Sum, 0),
			comm.IReduceTo(world, total, last, comm.Sum, 0),
			comm.IAllReduceTo(world, most, last, comm.Max),
			comm.IBroadcast(world, root, 2),
			comm.IScan(world, scan, comm.Sum),
			comm.IScanTo(world, scanTo, ones[:1], comm.Sum),
			comm.IExScan(world, below, comm.Sum),
			comm.IExScanTo(world, belowTo, ones[:1], comm.Sum),
			comm.IReduceScatter(world, part, all, comm.Sum),
			comm.IReduceScatterV(world, partV, parts, comm.Sum),
			comm.IAllReduceCoalesced(world, [][]int{mine, share}, comm.Sum),
			comm.IAllGather(world, gathered, []int{r}),
			comm.IAllGatherV(world, gatheredV, []int{r}),
			comm.IGather(world, onRoot, []int{r}, 0),
			comm.IGatherV(world, onRootV, []int{r}, 0),
			comm.IScatter(world, share, all, 0),
			comm.IScatterV(world, shareV, shares, 0),
			comm.IAllToAll(world, exchanged, all),
			comm.IAllToAllV(world, exchangedV, ones, all, ones),
			comm.IAllToAllW(world, exchangedW, [][]int{{r}, {r}, {r}}),
		}
		for _, work := range works {
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		if r == 0 {
			fmt.Println(sum, total, most, root, scan, scanTo, part, partV)
			fmt.Println(gathered, gatheredV, onRoot, onRootV, share, shareV, exchanged, exchangedV, exchangedW)
		}
		return nil
	})
	// Output:
	// [3] [3] [2] [7] [1] [1] [30] [3]
	// [0 1 2] [[0] [1] [2]] [0 1 2] [[0] [1] [2]] [10] [1 1] [10 10 10] [10 10 10] [[0] [1] [2]]
}

func ExampleIBarrier() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		everybodyIsHere := comm.IBarrier(world)
		select {
		case <-everybodyIsHere.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if world.Rank() == 0 {
			fmt.Println("go")
		}
		return everybodyIsHere.Err()
	})
	// Output: go
}
