package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm"
)

// hangs: one rank hangs in the first attempt, in one of the ways of hangIn, and the others wait for it. They live on if they can.
func hangs(ctx context.Context, odd int) error {
	g, err := comm.Init(ctx)
	for {
		if err == nil {
			err = hanging(ctx, g, odd)
		}
		var died *comm.PeerError
		if !errors.As(err, &died) || os.Getenv("GORUN_ROUND_SOCKET") == "" {
			if err == nil {
				fmt.Println("done")
				err = g.Close()
			}
			return err
		}
		fmt.Println("because of", died.Rank, died.Death)
		g, err = comm.Rejoin(ctx)
	}
}

func hanging(ctx context.Context, g *comm.Group, odd int) error {
	restarts, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT"))
	for i := range 100 {
		if i == 50 && restarts == 0 && g.Rank() == odd {
			hangIn(os.Args[3])
		}
		if err := comm.AllReduce(ctx, g, make([]float32, 1000), comm.Sum); err != nil {
			return err
		}
	}
	return nil
}

// hangIn hangs.
func hangIn(way string) {
	switch way {
	case "loop":
		for n := 0; ; n++ {
			spun = n
		}
	case "mutex":
		var mu sync.Mutex
		mu.Lock()
		mu.Lock()
	case "pipe":
		var fds [2]int
		_ = syscall.Pipe(fds[:])                          // does not fail here
		_, _ = syscall.Write(fds[1], make([]byte, 1<<20)) // more than it has room for
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // which may take a moment
		select {}
	}
}

var spun int

// slow: all ranks take long from one operation to the next.
func slow(ctx context.Context, _ int) error {
	return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
		for range 20 {
			time.Sleep(200 * time.Millisecond)
			if err := comm.Barrier(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// circles: two ranks wait for each other.
func circles(ctx context.Context, _ int) error {
	return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
		_, err := comm.Recv(ctx, g, make([]int, 1), 1-g.Rank())
		return err
	})
}
