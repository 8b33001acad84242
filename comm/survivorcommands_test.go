package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var survivorCommands = map[string]func(ctx context.Context, s *survivor, args []string) (string, error){
	"init": func(ctx context.Context, s *survivor, args []string) (string, error) {
		options := s.options
		if len(args) > 0 {
			options = append(slices.Clone(options), WithInitMethod(args[0]))
		}
		g, err := Init(ctx, options...)
		switch {
		case err != nil:
		case len(args) > 0:
			s.other = g
		default:
			s.world = g
		}
		return "", err
	},
	// rejoin has an argument: after how many milliseconds the context ends. With COMM_TEST_AGAIN it calls Rejoin until it succeeds, as programs do.
	"rejoin": func(ctx context.Context, s *survivor, args []string) (string, error) {
		if len(args) > 0 {
			var cancel context.CancelFunc
			ctx, cancel = within(ctx, args[0])
			defer cancel()
		}
		g, err := Rejoin(ctx)
		for len(args) == 0 && (errors.As(err, new(*PeerError)) || errors.Is(err, ErrRoundOver)) && os.Getenv("COMM_TEST_AGAIN") != "" {
			g, err = Rejoin(ctx)
		}
		if err == nil {
			s.before, s.world = s.world, g
		}
		return "", err
	},
	"check": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		return "", checkWorld(ctx, s.world)
	},
	// run repeats an operation until it fails.
	"run": func(ctx context.Context, s *survivor, args []string) (string, error) {
		operation := survivable[args[0]]
		if operation == nil {
			operation = operations[args[0]]
		}
		for {
			if err := operation(ctx, s.world); err != nil {
				return "", err
			}
		}
	},
	// use carries an operation out in the world before.
	"use old": func(ctx context.Context, s *survivor, args []string) (string, error) {
		return "", operations[args[0]](ctx, s.before)
	},
	"use other": func(ctx context.Context, s *survivor, args []string) (string, error) {
		return "", operations[args[0]](ctx, s.other)
	},
	// alloc allocates elements.
	"alloc": func(_ context.Context, s *survivor, args []string) (_ string, err error) {
		s.buf, err = Alloc[int64](s.world, number(args[0]))
		return "", err
	},
	// fill writes a number to every element that has been allocated.
	"fill": func(_ context.Context, s *survivor, args []string) (string, error) {
		n := int64(number(args[0]))
		repeat(s.buf, 1, func(int) int64 { return n })
		return "", nil
	},
	// holds checks that every element is a number.
	"holds": func(_ context.Context, s *survivor, args []string) (string, error) {
		n := int64(number(args[0]))
		return "", samePeriods("memory", nil, s.buf, func(int) int64 { return n })
	},
	"reduce": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		return "", AllReduce(ctx, s.world, s.buf, Sum)
	},
	"reduce for ever": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		for {
			if err := AllReduce(ctx, s.world, s.buf, Max); err != nil {
				return "", err
			}
		}
	},
	"free":     func(_ context.Context, s *survivor, _ []string) (string, error) { return "", MemFree(s.buf) },
	"free old": func(_ context.Context, s *survivor, _ []string) (string, error) { return "", Free(s.before, s.buf) },
	// fork lets another process with the same environment call Init.
	"fork": func(ctx context.Context, _ *survivor, _ []string) (string, error) {
		child := exec.CommandContext(ctx, os.Args[0])
		child.Stdin = strings.NewReader(`["init"]` + "\n")
		out, err := child.Output()
		return string(out), err
	},
	"close": func(_ context.Context, s *survivor, _ []string) (string, error) { return "", s.world.Close() },
	"exit": func(_ context.Context, _ *survivor, args []string) (string, error) {
		os.Exit(number(args[0]))
		return "", nil
	},
	"setenv": func(_ context.Context, _ *survivor, args []string) (string, error) {
		return "", os.Setenv(args[0], args[1])
	},
	"unsetenv": func(_ context.Context, _ *survivor, args []string) (string, error) {
		for _, name := range args {
			if err := os.Unsetenv(name); err != nil {
				return "", err
			}
		}
		return "", nil
	},
	// explain explains an operation of the world, or of the group of some ranks.
	"explain": func(ctx context.Context, s *survivor, args []string) (_ string, err error) {
		g := s.world
		if len(args) > 2 {
			var ranks []int
			for _, rank := range args[2:] {
				ranks = append(ranks, number(rank))
			}
			if g, err = NewGroup(ctx, s.world, ranks); err != nil || g == nil {
				return "", err
			}
		}
		return g.Explain(args[0], number(args[1])), nil
	},
	"footprint": func(context.Context, *survivor, []string) (string, error) { return footprint() },
}

func within(ctx context.Context, milliseconds string) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(number(milliseconds))*time.Millisecond)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// checkWorld uses a world as programs do that make their groups again, and compares every result.
func checkWorld(ctx context.Context, g *Group) error {
	round, err := strconv.Atoi(os.Getenv("GORUN_ROUND"))
	if err != nil {
		return err
	}
	part, err := NewGroup(ctx, g, g.Ranks())
	if err != nil {
		return err
	}
	mesh, err := NewMesh(ctx, g, []int{g.Size(), 1}, "data", "model")
	if err != nil {
		return err
	}
	for _, g := range []*Group{g, part, mesh.Group("data")} {
		for _, n := range []int{1, 1000, 100_000} {
			shared, err := Alloc[int64](g, n)
			if err != nil {
				return err
			}
			for _, buf := range [][]int64{make([]int64, n), shared} {
				want := int64(0)
				for r := range g.Size() {
					want += int64(1000*round + r)
				}
				repeat(buf, 1, func(int) int64 { return int64(1000*round + g.Rank()) })
				err := AllReduce(ctx, g, buf, Sum)
				if err := samePeriods(fmt.Sprintf("round %d: AllReduce", round), err, buf, func(int) int64 { return want }); err != nil {
					return err
				}
			}
			if err := Free(g, shared); err != nil {
				return err
			}
		}
		next, before := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		out, in := ISend(g, []int{1000*round + g.Rank()}, next), []int{0}
		if _, err := Recv(ctx, g, in, before); err != nil {
			return err
		}
		if err := out.Wait(ctx); err != nil {
			return err
		}
		if in[0] != 1000*round+before {
			return fmt.Errorf("round %d: rank %d sends %d", round, before, in[0])
		}
	}
	return nil
}

// footprint is what a process has that may leak.
func footprint() (string, error) {
	runtime.GC()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "", err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprint(runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "memfd:gorun"), m.HeapAlloc>>10), nil
}
