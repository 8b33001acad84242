package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm"
)

// ranks is a worker that links comm: the scripts run it under gorun as "ranks PROGRAM [RANK]".
func ranks() {
	program := rankPrograms[os.Args[1]]
	odd := -1 // the rank that does something else
	if len(os.Args) > 2 {
		odd, _ = strconv.Atoi(os.Args[2]) // the scripts are ours
	}
	if err := program(context.Background(), odd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(comm.ExitCode(err))
	}
}

// allowedCPUs returns the CPUs that the first thread of this process may use.
func allowedCPUs() string {
	status, _ := os.ReadFile("/proc/self/status")
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
	list, _, _ = strings.Cut(list, "\n")
	return list
}

var rankPrograms = map[string]func(ctx context.Context, odd int) error{
	"sum": func(ctx context.Context, _ int) error { return inWorld(ctx, printSum) },

	// twice: two worlds, one after the other. Only the second says something.
	"twice": func(ctx context.Context, _ int) error {
		silent := func(ctx context.Context, g *comm.Group) error { return comm.Barrier(ctx, g) }
		if err := inWorld(ctx, silent); err != nil {
			return err
		}
		return inWorld(ctx, printSum)
	},

	// processors: the CPUs of the process before it has joined the world, and then.
	"processors": func(ctx context.Context, _ int) error {
		before := allowedCPUs()
		return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
			fmt.Println("CPUs", before, "and then", allowedCPUs())
			return comm.Barrier(ctx, g)
		})
	},

	// rejoins: one rank kills itself twice, and the others live on.
	"rejoins": func(ctx context.Context, odd int) error {
		g, err := comm.Init(ctx)
		for worlds := 1; ; worlds++ {
			if err == nil {
				err = rejoining(ctx, g, odd)
			}
			var died *comm.PeerError
			if !errors.As(err, &died) {
				fmt.Println("worlds:", worlds)
				return errors.Join(err, g.Close())
			}
			fmt.Println("because of", died.Rank, died.Death)
			g, err = comm.Rejoin(ctx)
		}
	},

	// leaves-early: in the first round the ranks from one on end with exit code 0 while the others still need them.
	"leaves-early": func(ctx context.Context, odd int) error {
		return inWorlds(ctx, func(ctx context.Context, g *comm.Group) error {
			if g.Rank() >= odd && os.Getenv("GORUN_ROUND") == "1" {
				return g.Close()
			}
			return comm.AllReduce(ctx, g, make([]int, 1), comm.Sum)
		})
	},

	// goes-on: in the first world the ranks compute until one of them is gone.
	"goes-on": func(ctx context.Context, _ int) error {
		return inWorlds(ctx, func(ctx context.Context, g *comm.Group) error {
			fmt.Println("goes on in round", os.Getenv("GORUN_ROUND"))
			for {
				if err := comm.AllReduce(ctx, g, make([]int, 1), comm.Sum); err != nil || os.Getenv("GORUN_ROUND") != "1" {
					return err
				}
			}
		})
	},

	// revokes: in each round one rank calls Rejoin though nothing has failed.
	"revokes": func(ctx context.Context, odd int) error {
		return inWorlds(ctx, func(ctx context.Context, g *comm.Group) error {
			for {
				if err := comm.AllReduce(ctx, g, make([]int, 1), comm.Sum); err != nil {
					return err
				}
				if g.Rank() == odd {
					return comm.ErrRoundOver // as if it were
				}
			}
		})
	},

	// freezes: in the first world one rank stops. The others wait for it only for a while.
	"freezes": func(ctx context.Context, odd int) error {
		return inWorldsWithin(ctx, 2*time.Second, func(ctx context.Context, g *comm.Group) error {
			if g.Rank() == odd && os.Getenv("GORUN_ROUND") == "1" {
				if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
					return err
				}
				select {} // the call may return before that
			}
			return comm.AllReduce(ctx, g, make([]int, 1), comm.Sum)
		})
	},

	// follows: the worker takes part by hand.
	"follows": follow,

	"hangs":   hangs,
	"slow":    slow,
	"circles": circles,

	// stays: without --on-failure=replace, nobody rejoins.
	"stays": func(ctx context.Context, _ int) error {
		_, err := comm.Rejoin(ctx)
		return err
	},

	// holds: the world is there until gorun stops it.
	"holds": func(ctx context.Context, _ int) error {
		return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
			if err := comm.Barrier(ctx, g); err != nil {
				return err
			}
			fmt.Println("holds")
			time.Sleep(time.Hour)
			return nil
		})
	},

	// absent: one rank never calls Init.
	"absent": func(ctx context.Context, odd int) error {
		if os.Getenv("RANK") == strconv.Itoa(odd) {
			time.Sleep(time.Hour) // until gorun stops it
		}
		_, err := comm.Init(ctx, comm.WithTimeout(time.Second))
		return err
	},

	// lengths: one rank has an element more.
	"lengths": func(ctx context.Context, odd int) error {
		return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
			n := 8
			if g.Rank() == odd {
				n = 9
			}
			return comm.AllReduce(ctx, g, make([]float32, n), comm.Sum)
		})
	},

	// skips: one rank leaves out a call and sleeps.
	"skips": func(ctx context.Context, odd int) error {
		return inWorld(ctx, func(ctx context.Context, world *comm.Group) error {
			g, err := comm.NewGroup(ctx, world, world.Ranks(), comm.WithTimeout(time.Second))
			if err != nil {
				return err
			}
			if err := comm.Barrier(ctx, g); err != nil {
				return err
			}
			if g.Rank() == odd {
				time.Sleep(time.Hour) // until gorun stops it
			}
			return comm.AllReduce(ctx, g, make([]float32, 100_000), comm.Sum)
		})
	},

	// killed: one rank is killed in the middle of its work.
	"killed": func(ctx context.Context, odd int) error {
		return computeAndThen(ctx, odd, func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	},

	// quits: one rank exits with code 3 in the middle of its work.
	"quits": func(ctx context.Context, odd int) error {
		return computeAndThen(ctx, odd, func() error { return exit(3) })
	},

	// stops: one rank stops its agent, whose process ID it writes to a file, and exits with code 3.
	"stops": func(ctx context.Context, odd int) error {
		return computeAndThen(ctx, odd, func() error {
			if err := stopAgent(os.Args[3]); err != nil {
				return err
			}
			return exit(3)
		})
	},

	// leaves: one rank exits with code 0 in the middle of its work.
	"leaves": func(ctx context.Context, odd int) error {
		return computeAndThen(ctx, odd, func() error { return exit(0) })
	},

	// patient: all ranks compute until a file is there, and tell how long it took them to begin. Each operation has the time that programs have
	// who say nothing of it.
	"patient": func(ctx context.Context, _ int) error {
		begun := time.Now()
		g, err := comm.Init(ctx)
		if err != nil {
			return err
		}
		if err := computeUntil(ctx, g, os.Args[2], begun); err != nil {
			return err
		}
		return g.Close()
	},

	// flaky: one rank fails in the middle of the first attempt; the second computes.
	"flaky": func(ctx context.Context, odd int) error {
		return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
			if g.Rank() == odd && os.Getenv("TORCHELASTIC_RESTART_COUNT") == "0" {
				os.Exit(3)
			}
			return printSum(ctx, g)
		})
	},
}

// stopAgent stops the agent of this worker, which is the parent of the guard, its own parent.
func stopAgent(file string) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getppid()))
	if err != nil {
		return err
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	agent, err := strconv.Atoi(strings.Fields(fields)[1])
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(agent)), 0o600); err != nil {
		return err
	}
	return syscall.Kill(agent, syscall.SIGSTOP)
}

func exit(code int) error {
	os.Exit(code)
	return nil
}

// computeAndThen lets all ranks compute. One of them ends in the middle of that, or does something else.
func computeAndThen(ctx context.Context, odd int, end func() error) error {
	return inWorld(ctx, func(ctx context.Context, g *comm.Group) error {
		for i := 0; ; i++ {
			if g.Rank() == odd && i == 100 {
				if err := end(); err != nil {
					return err
				}
			}
			if err := comm.AllReduce(ctx, g, make([]float32, 1000), comm.Sum); err != nil {
				return err
			}
		}
	})
}

func inWorld(ctx context.Context, program func(context.Context, *comm.Group) error) error {
	g, err := comm.Init(ctx, comm.WithTimeout(30*time.Second))
	if err != nil {
		return err
	}
	if err := program(ctx, g); err != nil {
		return err
	}
	return g.Close()
}

// computeUntil computes until the file is there.
func computeUntil(ctx context.Context, g *comm.Group, file string, begun time.Time) error {
	for i := 0; ; i++ {
		done := []int{0}
		if _, err := os.Stat(file); err == nil {
			done[0] = 1
		}
		if err := comm.AllReduce(ctx, g, done, comm.Min); err != nil {
			return err
		}
		switch {
		case i == 0:
			fmt.Printf("up: %d ranks in round %s, pid %d, after %v\n", g.Size(), os.Getenv("GORUN_ROUND"), os.Getpid(), time.Since(begun).Round(time.Millisecond))
		case done[0] == 1:
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// inWorlds does the same in each world until that succeeds.
func inWorlds(ctx context.Context, do func(context.Context, *comm.Group) error) error {
	return inWorldsWithin(ctx, time.Minute, do)
}

// inWorldsWithin is inWorlds with so much time for each operation.
func inWorldsWithin(ctx context.Context, limit time.Duration, do func(context.Context, *comm.Group) error) error {
	g, err := comm.Init(ctx, comm.WithTimeout(limit))
	for {
		if err == nil {
			err = do(ctx, g)
		}
		if !errors.As(err, new(*comm.PeerError)) && !errors.As(err, new(*comm.AbortError)) && !errors.As(err, new(*comm.MissingRanksError)) && !errors.Is(err, comm.ErrRoundOver) {
			break
		}
		fmt.Println("round", os.Getenv("GORUN_ROUND")+":", err)
		g, err = comm.Rejoin(ctx)
	}
	if err == nil {
		fmt.Println("done in round", os.Getenv("GORUN_ROUND"))
	}
	return err
}

func printSum(ctx context.Context, g *comm.Group) error {
	sum := []int{g.Rank()}
	if err := comm.AllReduce(ctx, g, sum, comm.Sum); err != nil {
		return err
	}
	fmt.Printf("sum %d of %d\n", sum[0], g.Size())
	return nil
}

// rejoining is what a rank that rejoins does in one world.
func rejoining(ctx context.Context, g *comm.Group, odd int) error {
	restarts, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT"))
	part, err := comm.NewGroup(ctx, g, g.Ranks())
	for i := 0; err == nil && i < 100; i++ {
		if i == 50 && restarts < 2 && g.Rank() == odd {
			fmt.Fprintln(os.Stderr, "last words")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		sum := []int64{int64(g.Rank())}
		if err = comm.AllReduce(ctx, part, sum, comm.Sum); err == nil && sum[0] != int64(g.Size()*(g.Size()-1)/2) {
			return fmt.Errorf("the sum is %d", sum[0])
		}
	}
	return err
}
