package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var newcomerClash = Scenario{
	Name:  "newcomer-clash",
	About: "a node comes that asks for a rank which another has: it ends with exit code 2, and the others do not notice",
	job:   job{etcd: 1, first: -1, spare: 1, ranks: true, ttl: leaseTime, lastCall: leaseTime},
	steps: func(int) []step {
		return []step{
			fault("another node 0 comes", nobody, func(s *testbed) error {
				p, err := s.startNode("newcomer", 0, s.options.Gorun)
				if err == nil {
					s.newcomer, p.mayEnd = p, true
				}
				return err
			}),
			undisturbedUntil("it ends with exit code 2", func(s *testbed) (bool, error) {
				if code := s.newcomer.cmd.ProcessState; s.newcomer.ended && code.ExitCode() != 2 {
					return false, fmt.Errorf("it has ended: %v", code)
				}
				return s.newcomer.ended, nil
			}),
		}
	},
}

// flappingCall is how long nodes wait for more in newcomer-flapping, from which follows how long one is kept out.
const flappingCall = time.Second

var newcomerFlapping = Scenario{
	Name:  "newcomer-flapping",
	About: "a node comes that cannot start its workers, again and again: it is kept out longer and longer, and the job pays nothing",
	job:   job{etcd: 1, first: -1, spare: 1, ttl: leaseTime, lastCall: flappingCall},
	steps: func(n int) []step {
		return []step{
			fault("a node comes that fails", nobody, (*testbed).startBroken),
			newcomerEnds(),
			again(upTo(0, n-1)),
			excluded(upTo(0, n-1)),
			{"it is told to go", func(_ context.Context, s *testbed) error { return s.signal(s.newcomer, syscall.SIGTERM) }},
			newcomerEnds(),
		}
	},
}

// flappingLimit is how often a node that fails may get in before it is kept out: where the machine is slow, some times do not count.
const flappingLimit = 20

// excluded lets the node come again until it is kept out for a while, in which nothing happens to the others.
func excluded(others []int) step {
	return step{"it comes again until it is kept out", func(ctx context.Context, s *testbed) error {
		for range flappingLimit {
			if err := s.startBroken(); err != nil {
				return err
			}
			round := s.world.newest()
			limited, cancel := context.WithTimeout(ctx, 3*flappingCall)
			err := s.await(limited, func(*world) bool { return s.newcomer.ended })
			over := limited.Err() != nil
			cancel()
			switch {
			case err == nil:
			case over && ctx.Err() == nil && s.world.newest() == round:
				return together(others).do(ctx, s)
			case over && ctx.Err() == nil: // it has got in at the last moment
				err = newcomerEnds().do(ctx, s)
			}
			if err == nil {
				err = together(others).do(ctx, s)
			}
			if err != nil {
				return err
			}
		}
		return fmt.Errorf("the node has come %d times, and still gets in", flappingLimit)
	}}
}

// startBroken starts an agent whose program cannot be executed.
func (s *testbed) startBroken() error {
	program := filepath.Join(s.dir, "broken")
	if err := os.WriteFile(program, []byte("\x7fELF, and no more"), 0o700); err != nil {
		return err
	}
	p, err := s.startNode("newcomer", s.options.Nodes-1, program)
	if err == nil {
		s.newcomer, p.mayEnd = p, true
	}
	return err
}

func newcomerEnds() step {
	return step{"it ends", func(ctx context.Context, s *testbed) error {
		return s.await(ctx, func(*world) bool { return s.newcomer.ended })
	}}
}
