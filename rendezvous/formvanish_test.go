package rendezvous_test

import (
	"fmt"
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
	visit := func(host string) rendezvous.Decision {
		t.Helper()
		key := c.comeFrom(host, -1)
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
		visit("moon")
		c.wantRound(t, round, "n1", 0, "more nodes have come: 1")
	}
	wantReason(t, visit("moon"), "round 4 is running with 1 of 1 to 2 nodes; host moon was lost 3 times in a row; it is let in again in 1s")
	c.wantRound(t, 4, "n1", 0, "more nodes have come: 1")

	c.settle(waits) // so long ago that it is forgotten
	visit("moon")
	c.wantRound(t, 5, "n1", 0, "more nodes have come: 1")
	visit("moon")
	c.wantRound(t, 6, "n1", 0, "more nodes have come: 1")

	// They have not been in a round, so others are not kept out.
	for round := 7; round <= 15; round++ {
		visit(fmt.Sprint("host", round))
		c.wantRound(t, round, "n1", 0, "more nodes have come: 1")
	}
}
