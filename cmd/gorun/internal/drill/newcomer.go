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
			fault("another node 0 comes", nobody, func(s *stage) error {
				p, err := s.startNode("newcomer", 0, s.options.Gorun)
				if err == nil {
					s.newcomer, p.mayEnd = p, true
				}
				return err
			}),
			undisturbedUntil("it ends with exit code 2", func(s *stage) (bool, error) {
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
		steps := []step{fault("a node comes that fails", nobody, (*stage).startBroken)}
		for i := range 5 {
			if i > 0 {
				steps = append(steps, step{"it comes again", func(_ context.Context, s *stage) error { return s.startBroken() }})
			}
			steps = append(steps, newcomerEnds())
			if i == 0 {
				steps = append(steps, again(upTo(0, n-1)))
			} else {
				steps = append(steps, together(upTo(0, n-1)))
			}
		}
		return append(steps,
			step{"it comes once more", func(_ context.Context, s *stage) error { return s.startBroken() }},
			undisturbed(2*flappingCall),
			step{"it is told to go", func(_ context.Context, s *stage) error { return s.signal(s.newcomer, syscall.SIGTERM) }},
			newcomerEnds(),
		)
	},
}

// startBroken starts an agent whose program is none.
func (s *stage) startBroken() error {
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
	return step{"it ends", func(ctx context.Context, s *stage) error {
		return s.await(ctx, func(*world) bool { return s.newcomer.ended })
	}}
}
