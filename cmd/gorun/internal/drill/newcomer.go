package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// flappingCall is last_call_timeout in flapping-node: the others wait for no longer before they let a node in.
const flappingCall = time.Second

// excluded starts the broken newcomer again, and checks that it does not get in.
func excluded() step {
	return step{"it comes again, and is kept out", func(ctx context.Context, d *drill) error {
		if err := d.startBroken(); err != nil {
			return err
		}
		return undisturbed(5*flappingCall).do(ctx, d)
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
