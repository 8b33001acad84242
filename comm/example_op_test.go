package comm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm"
)

func ExampleReduceScatterV() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		parts := [][]int{{1, 2, 3}, {4}} // part r goes to rank r
		mine := make([]int, len(parts[world.Rank()]))
		if err := comm.ReduceScatterV(ctx, world, mine, parts, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("rank 0 has", mine)
		}
		return nil
	})
	// Output: rank 0 has [2 4 6]
}

func ExampleScan() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		balance := []int{world.Rank() + 1}
		if err := comm.Scan(ctx, world, balance, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 3 {
			fmt.Println("1 + 2 + 3 + 4 =", balance[0])
		}
		return nil
	})
	// Output: 1 + 2 + 3 + 4 = 10
}

func ExampleExScan() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		rows := 100 + world.Rank() // that this rank will write to a file
		offset := []int{rows}
		if err := comm.ExScan(ctx, world, offset, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			offset[0] = 0 // has kept its input
		}
		if world.Rank() == 2 {
			fmt.Println("rank 2 writes from row", offset[0])
		}
		return nil
	})
	// Output: rank 2 writes from row 201
}

// The forms with To leave the input as it is.
func ExampleAllReduceTo() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		in := []int{world.Rank() + 1}
		all, one, upToHere, below := []int{0}, []int{0}, []int{0}, []int{0}
		err := errors.Join(
			comm.AllReduceTo(ctx, world, all, in, comm.Sum), comm.ReduceTo(ctx, world, one, in, comm.Prod, 1),
			comm.ScanTo(ctx, world, upToHere, in, comm.Sum), comm.ExScanTo(ctx, world, below, in, comm.Sum))
		if world.Rank() == 1 {
			fmt.Println(in, all, one, upToHere, below)
		}
		return err
	})
	// Output: [2] [6] [6] [3] [1]
}

func ExampleMinLoc() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		loss := []float64{0.7, 0.2, 0.5}[world.Rank()]
		best := []float64{loss, float64(world.Rank())}
		if err := comm.AllReduce(ctx, world, best, comm.MinLoc); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Printf("the least loss is %v, on rank %v\n", best[0], best[1])
		}
		return nil
	})
	// Output: the least loss is 0.2, on rank 1
}

func ExamplePreMulSum() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		samples := []float64{30, 10}[world.Rank()] // of 40 in all
		grad := []float64{float64(world.Rank() + 1)}
		if err := comm.AllReduce(ctx, world, grad, comm.PreMulSum(samples/40)); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("weighted mean:", grad[0])
		}
		return nil
	})
	// Output: weighted mean: 1.25
}

func ExampleNewOp() {
	gcd := comm.NewOp("gcd", true, func(acc, in []int) {
		for i, b := range in {
			for b != 0 {
				acc[i], b = b, acc[i]%b
			}
		}
	})
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		n := []int{[]int{24, 36, 60}[world.Rank()]}
		if err := comm.AllReduce(ctx, world, n, gcd); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(n[0])
		}
		return nil
	})
	// Output: 12
}

func ExampleNewBlockOp() {
	// Matrices of 2 × 2, row by row. Their product depends on the order.
	product := comm.NewBlockOp("matrix product", 4, false, func(acc, in []int) {
		for i := 0; i < len(acc); i += 4 {
			a, b := acc[i:i+4], in[i:i+4]
			a[0], a[1], a[2], a[3] = a[0]*b[0]+a[1]*b[2], a[0]*b[1]+a[1]*b[3], a[2]*b[0]+a[3]*b[2], a[2]*b[1]+a[3]*b[3]
		}
	})
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		m := [][]int{{1, 1, 0, 1}, {1, 0, 1, 1}}[world.Rank()]
		if err := comm.AllReduce(ctx, world, m, product); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println(m)
		}
		return nil
	})
	// Output: [2 1 1 1]
}

func ExampleProbe() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			return comm.Send(ctx, world, []byte("of a length that rank 1 does not know"), 1)
		}
		status, err := comm.Probe(ctx, world, comm.AnySource)
		if err != nil {
			return err
		}
		text := make([]byte, status.Count)
		if _, err := comm.Recv(ctx, world, text, status.Source, status.Tag); err != nil {
			return err
		}
		fmt.Printf("%s\n", text)
		return nil
	})
	// Output: of a length that rank 1 does not know
}

func ExampleTryProbe() {
	inWorld(1, func(ctx context.Context, world *comm.Group) error {
		for range 2 {
			if status, found, err := comm.TryProbe(world, comm.AnySource, comm.AnyTag); err != nil {
				return err
			} else if found {
				fmt.Println("a message of", status.Count)
			} else {
				fmt.Println("no message yet")
			}
			if err := comm.Send(ctx, world, []int{1, 2, 3}, 0); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// no message yet
	// a message of 3
}
