package node

import (
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// TestStuckLoop: a node whose loop makes no progress loses its lease, and with it leadership and its place. When it goes on it
// finds out.
func TestStuckLoop(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, what := range []string{"leader", "another"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 2, 3)
			agents := j.agents(3)
			rounds := together(t, agents)
			leader, rest, left := j.split(t, agents, rounds)
			stuck := leader
			if what == "another" {
				stuck, rest[0] = rest[0], leader
			}
			var its *rendezvous.Round
			left = left[:0]
			for i, a := range agents {
				if a == stuck {
					its = rounds[i]
				} else {
					left = append(left, rounds[i])
				}
			}
			release := make(chan struct{})
			stuck.look(func(*stateMachine) { <-release })
			wantNewRound(t, left)
			if r := together(t, rest)[0]; r.ID != 2 || r.Size != 2 || r.Why != stuck.node.ID+" on "+stuck.node.Host+" is lost" {
				t.Errorf("the second round is %s", show(r))
			}
			if err := its.Err(); err != nil {
				t.Errorf("its round is over before it can know: %v", err)
			}
			close(release)
			wantNewRound(t, []*rendezvous.Round{its})
		})
	}
}
