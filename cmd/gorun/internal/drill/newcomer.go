package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// flappingCall is last_call_timeout in flapping-node. It determines how long a node is kept out.
const flappingCall = time.Second

// flappingLimit is how often a failing node may get in before it must be kept out. On a slow machine, some of these times do not
// count.
const flappingLimit = 20

// excluded restarts the node until it is kept out for a while, and checks that the others are not disturbed.
func excluded(others []int) step {
	return step{"it comes again until it is kept out", func(ctx context.Context, d *drill) error {
		for range flappingLimit {
			if err := d.startBroken(); err != nil {
				return err
			}
			round := d.newest()
			limited, cancel := context.WithTimeout(ctx, 3*flappingCall)
			err := d.await(limited, func() bool { return d.newcomer.ended })
			over := limited.Err() != nil
			cancel()
			switch {
			case err == nil:
			case over && ctx.Err() == nil && d.newest() == round:
				return together(others).do(ctx, d)
			case over && ctx.Err() == nil: // it has got in at the last moment
				err = newcomerEnds().do(ctx, d)
			}
			if err == nil {
				err = together(others).do(ctx, d)
			}
			if err != nil {
				return err
			}
		}
		return fmt.Errorf("the node joined %d times and was still not kept out", flappingLimit)
	}}
}

// newcomerWithRank starts one more agent, which asks for the rank of another.
func newcomerWithRank(rank int) step {
	return breaks(fmt.Sprintf("a second node %d joins", rank), nobody, func(d *drill) error {
		return d.startNewcomer(rank, d.options.Gorun)
	})
}

// newcomerFails waits until the newcomer has ended with an exit code, while all others compute.
func newcomerFails(code int) step {
	return undisturbedUntil(fmt.Sprintf("it ends with exit code %d", code), func(d *drill) (bool, error) {
		if state := d.newcomer.cmd.ProcessState; d.newcomer.ended && state.ExitCode() != code {
			return false, fmt.Errorf("it has ended: %v", state)
		}
		return d.newcomer.ended, nil
	})
}

// brokenNewcomer starts one more agent, which cannot start its workers.
func brokenNewcomer() step {
	return breaks("a new node fails", nobody, func(d *drill) error { return d.startBroken() })
}

func stopNewcomer() step {
	return step{"it gets SIGTERM", func(_ context.Context, d *drill) error { return d.signal(d.newcomer, syscall.SIGTERM) }}
}

// startBroken starts an agent whose program cannot be executed.
func (s *testbed) startBroken() error {
	program := filepath.Join(s.dir, "broken")
	if err := os.WriteFile(program, []byte("\x7fELF, and no more"), 0o700); err != nil {
		return err
	}
	return s.startNewcomer(s.options.Nodes-1, program)
}

func (s *testbed) startNewcomer(node int, program string) error {
	p, err := s.startNode("newcomer", node, program)
	if err == nil {
		s.newcomer, p.mayEnd = p, true
	}
	return err
}

func newcomerEnds() step {
	return step{"it ends", func(ctx context.Context, d *drill) error {
		return d.await(ctx, func() bool { return d.newcomer.ended })
	}}
}
