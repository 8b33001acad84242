package comm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gorun/gorun/comm"
)

// Two ranks meet in a file; what gorun starts needs no options.
func ExampleInit() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	rank := func(r int) error {
		ctx := context.Background()
		world, err := comm.Init(ctx, comm.WithInitMethod("file://"+dir+"/meet"), comm.WithRank(r, 2), comm.WithTimeout(time.Minute))
		if err != nil {
			return err
		}
		sum := []int{r + 1}
		return errors.Join(comm.AllReduce(ctx, world, sum, comm.Sum), world.Close())
	}
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() { fmt.Println(rank(r)) })
	}
	wg.Wait()
	// Output:
	// <nil>
	// <nil>
}

func ExampleWork() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		in := []int{0}
		recv := comm.IRecv(world, in, comm.AnySource, comm.AnyTag)
		send := comm.ISend(world, []int{10 * world.Rank()}, 1-world.Rank(), 7)
		<-recv.Done() // or select among several
		if err := errors.Join(recv.Err(), send.Wait(ctx)); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(in[0], "from rank", recv.Status().Source, "with tag", recv.Status().Tag)
		}
		return nil
	})
	// Output: 10 from rank 1 with tag 7
}

func ExampleExitCode() {
	inWorld(1, func(ctx context.Context, world *comm.Group) error {
		err := comm.AllReduce(ctx, world, []float32{1}, comm.BitAnd)
		fmt.Println(err)
		fmt.Println("another attempt is no use:", comm.ExitCode(err) == 2)
		return nil
	})
	// Output:
	// comm: AllReduce: BitAnd has no meaning for float32
	// another attempt is no use: true
}

// Half floats are numbers that only convert: collectives compute with them.
func ExampleNewFloat16() {
	h, b := comm.NewFloat16(0.1), comm.NewBFloat16(0.1)
	fmt.Println(h.Float32(), b.Float32())
	// Output: 0.099975586 0.100097656
}
