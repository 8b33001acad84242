// Overlap: gradients are averaged in buckets while the next ones are computed. The program does a step both ways, first
// everything computed and then averaged, then overlapped, and says on standard error what that gained.
//
//	gorun --nproc-per-node 2 ./docs/examples/overlap
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gorun/gorun/comm"
)

const (
	layers   = 24
	elements = 128 << 10 // of a layer: 512 KiB
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "overlap:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	grads := make([][]float32, layers)
	for i := range grads {
		grads[i] = make([]float32, elements)
	}
	buckets := comm.NewBucketer[float32](world, comm.Avg, 512<<10, 2<<20) // a small one first, so that it starts early

	apart := func() error {
		for i := len(grads) - 1; i >= 0; i-- {
			backward(world.Rank(), i, grads[i])
		}
		for i := len(grads) - 1; i >= 0; i-- {
			buckets.Add(grads[i])
		}
		return buckets.Flush(ctx)
	}
	overlapped := func() error {
		for i := len(grads) - 1; i >= 0; i-- {
			backward(world.Rank(), i, grads[i])
			buckets.Add(grads[i]) // starts the bucket when it is full
		}
		return buckets.Flush(ctx)
	}

	if err := apart(); err != nil { // the first step connects the ranks
		return err
	}
	var took [2]time.Duration
	for i, step := range []func() error{apart, overlapped} {
		start := time.Now()
		if err := step(); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	if err := comm.AllReduce(ctx, world, took[:], comm.Max); err != nil { // a step takes as long as its slowest rank
		return err
	}
	for i, grad := range grads {
		if want := float32(i) + float32(world.Size()-1)/2; grad[0] != want || grad[elements-1] != want {
			return fmt.Errorf("layer %d has %v and %v, want %v", i, grad[0], grad[elements-1], want)
		}
	}
	fmt.Printf("rank %d has the mean gradients of %d layers\n", world.Rank(), layers)
	if world.Rank() == 0 {
		fmt.Fprintf(os.Stderr, "one after the other %v, overlapped %v: %.0f%% gained\n",
			took[0].Round(time.Microsecond), took[1].Round(time.Microsecond), 100*(1-float64(took[1])/float64(took[0])))
	}
	return nil
}

// backward computes the gradient of layer i. It stands for an accelerator's work, which takes a while and leaves the CPU free.
func backward(rank, i int, grad []float32) {
	time.Sleep(time.Millisecond)
	for j := range grad {
		grad[j] = float32(rank + i)
	}
}
