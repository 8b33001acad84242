package jobs

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/agent/control"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/liveness"
)

// maxProbed is how many agents of a job are probed.
const maxProbed = 32

// maxClockDifference is how far two clocks may be apart. Time servers keep clocks within milliseconds, and people compare logs by the second.
const maxClockDifference = 2 * time.Second

// A Probed agent has been probed.
type Probed struct {
	Host, Addr string
	control.Probe
	Err error // why nothing is known
}

// ProbeAll probes agents of a job: all of them, or some if there are many.
func ProbeAll(ctx context.Context, contacts rendezvous.Contacts) []Probed {
	agents := slices.Clone(contacts.Agents)
	rand.Shuffle(len(agents), func(i, j int) { agents[i], agents[j] = agents[j], agents[i] })
	agents = agents[:min(len(agents), maxProbed)]
	all := make([]Probed, len(agents))
	var probing sync.WaitGroup
	for i, c := range agents {
		probing.Go(func() {
			client := control.NewClient(func(ctx context.Context) (net.Conn, error) { return liveness.Dial(ctx, contacts.Secret, c.Key, c.Addr) })
			ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer to %d KiB within %v", control.ProbeSize>>10, answerTimeout))
			defer cancel()
			found, err := client.Probe(ctx)
			all[i] = Probed{c.Node.Host, c.Addr, found, err}
		})
	}
	probing.Wait()
	return all
}

// CheckNetwork fails if most of the agents cannot be reached: then something is wrong with this node, not with one of theirs.
func CheckNetwork(all []Probed) error {
	bad := slices.DeleteFunc(slices.Clone(all), func(p Probed) bool { return p.Err == nil })
	if 2*len(bad) <= len(all) {
		return nil
	}
	return fmt.Errorf("%d of %d nodes of the job cannot be reached, such as %s at %s: %w", len(bad), len(all), bad[0].Host, bad[0].Addr, bad[0].Err)
}

// CheckClock fails if the clock of this node differs from those of most others.
func CheckClock(all []Probed) error {
	known := slices.DeleteFunc(slices.Clone(all), func(p Probed) bool { return p.Err != nil })
	if len(known) == 0 {
		return nil
	}
	slices.SortFunc(known, func(a, b Probed) int { return cmp.Compare(a.Ahead, b.Ahead) })
	middle := known[(len(known)-1)/2]
	ahead := middle.Ahead.Abs() - middle.Took/2
	if ahead <= maxClockDifference {
		return nil
	}
	how := "behind"
	if middle.Ahead < 0 {
		how = "ahead of"
	}
	return fmt.Errorf("the clock of this node is %v %s that of %s", middle.Ahead.Abs().Round(100*time.Millisecond), how, middle.Host)
}
