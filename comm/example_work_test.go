package comm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm"
)

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
