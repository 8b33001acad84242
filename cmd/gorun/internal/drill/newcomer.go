package drill

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// newcomer is the key of an agent that is none of the nodes, although it has the number of one.
const newcomer = math.MaxInt

// flappingCall is last_call_timeout in flapping-node: the others wait for no longer before they let a node in.
const flappingCall = time.Second

// newcomerWithRank starts one more agent, which asks for the rank of another.
func newcomerWithRank(rank int) step {
	return act(fmt.Sprintf("a second node %d joins", rank), func(d *drill) error {
		return d.startNewcomer(rank, d.options.Gorun)
	})
}

// newcomerFails waits until the newcomer has ended with an exit code, while all others compute.
func newcomerFails(code int) step {
	return undisturbedUntil(fmt.Sprintf("it ends with exit code %d", code), func(d *drill) (bool, error) {
		if state := d.agents[newcomer].cmd.ProcessState; d.agents[newcomer].ended && state.ExitCode() != code {
			return false, fmt.Errorf("it has ended: %v", state)
		}
		return d.agents[newcomer].ended, nil
	})
}

// brokenNewcomer starts one more agent, which cannot start its workers, since its program cannot be executed.
func brokenNewcomer() step {
	return act("a newcomer's program cannot be executed", func(d *drill) error {
		program := filepath.Join(d.dir, "broken")
		if err := os.WriteFile(program, []byte("\x7fELF, and no more"), 0o700); err != nil {
			return err
		}
		return d.startNewcomer(d.options.Nodes-1, program)
	})
}

func (s *testbed) startNewcomer(node int, program string) error {
	p, err := s.startNode("newcomer", node, program)
	if err == nil {
		s.agents[newcomer], p.mayEnd = p, true
	}
	return err
}

func newcomerEnds() step {
	return until("it ends", func(d *drill) bool { return d.agents[newcomer].ended })
}
