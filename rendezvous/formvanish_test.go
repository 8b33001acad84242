package rendezvous_test

import (
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestNewcomersThatVanish: a host counts as lost if a round ends for it, and it leaves before the next one forms.
func TestNewcomersThatVanish(t *testing.T) {
	c := newCluster(1, 2, 0)
	c.s.LastCall = time.Second
	c.come(-1)
	c.settle(0)
	c.settle(c.s.LastCall)
	visit := func() rendezvous.Decision {
		t.Helper()
		key := c.comeFrom("moon", -1)
		d := c.settle(0)
		if c.s.Over != nil {
			c.die(key)
			c.again("n1")
			c.settle(0)
		}
		c.die(key)
		return d
	}
	for round := 2; round <= 4; round++ {
		visit()
		c.wantRound(t, round, "n1", 0, "more nodes have come: 1")
	}
	wantReason(t, visit(), "round 4 is running with 1 of 1 to 2 nodes; host moon was lost 3 times in a row; it is let in again in 1s")
	c.wantRound(t, 4, "n1", 0, "more nodes have come: 1")

	c.settle(waits) // so long ago that it is forgotten
	visit()
	c.wantRound(t, 5, "n1", 0, "more nodes have come: 1")
	visit()
	c.wantRound(t, 6, "n1", 0, "more nodes have come: 1")
}
