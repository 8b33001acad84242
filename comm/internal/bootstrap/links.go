package bootstrap

import (
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/store"
)

// farAway is the round trip from which on a machine is far away: then the number of messages that follow one another decides how long a
// collective takes.
const farAway = 2 * time.Millisecond

// farLinks returns links of about the latency of a world, as cost.Parse reads them, if most ranks on other machines are far away from rank 0. It is
// empty otherwise. Ranks measure only the way to the store. If the store is far away from rank 0, too, that says nothing about the ranks.
//
// There are few such latencies, each four times the one before: the algorithm, and with it the order of a sum, must not depend on how long a
// packet has taken by chance. The rate is low, so that nothing is chosen that sends much to save a little time.
func farLinks(ranks []Info) string {
	if ranks[0].RoundTrip >= farAway {
		return ""
	}
	var trips []time.Duration
	for _, r := range ranks {
		if !r.SameNetwork(ranks[0].Place) {
			trips = append(trips, r.RoundTrip)
		}
	}
	if len(trips) == 0 {
		return ""
	}
	slices.Sort(trips)
	median := trips[(len(trips)-1)/2]
	if median < farAway {
		return ""
	}
	latency := farAway
	for latency < time.Second/4 && median >= 4*latency {
		latency *= 4
	}
	return fmt.Sprintf("network=latency:%s,rate:1Gbit", latency)
}

// setsLatency reports whether text sets the latency of the network.
func setsLatency(text string) bool {
	const unset = -1
	l, err := cost.Links{Network: cost.Link{Latency: unset}}.With(text)
	return err == nil && l.Network.Latency != unset
}

// gapsOf returns the gaps of the links of ranks' machines, by rank. If ranks of a machine have set different rates, the lowest counts. The gap is 0 if
// none has set a rate: then that of rank 0 counts. gapsOf returns nil if the rate of rank 0 counts for all.
func gapsOf(ranks []Info) ([]int, error) {
	gap, first := map[any]int{}, 0 // by machine; that of rank 0
	for i, r := range ranks {
		own, err := cost.Links{}.With(r.Links)
		if err != nil {
			return nil, fmt.Errorf("rank %d on %s says of its links what this build of comm does not know: %w: build all ranks from the same version", i, r.Host, err)
		}
		at := machineOf(ranks, i)
		gap[at] = max(gap[at], own.Network.Gap)
		if i == 0 {
			first = own.Network.Gap
		}
	}
	gaps, differ := make([]int, len(ranks)), false
	for i := range ranks {
		gaps[i] = gap[machineOf(ranks, i)]
		differ = differ || gaps[i] != first && gaps[i] != 0
	}
	if !differ {
		return nil, nil
	}
	return gaps, nil
}

// distances returns how far away ranks are from rank 0, as far as they know. Those of one machine are as far away as the first of them that
// knows.
func distances(ranks []Info) []core.Distance {
	known := map[any]core.Distance{machineOf(ranks, 0): core.Near}
	for i, r := range ranks {
		if at := machineOf(ranks, i); known[at] == core.UnknownDistance && r.RoundTrip > 0 {
			known[at] = core.Near
			if r.RoundTrip >= farAway {
				known[at] = core.Far
			}
		}
	}
	d := make([]core.Distance, len(ranks))
	for i := range ranks {
		d[i] = known[machineOf(ranks, i)]
	}
	return d
}

// machineOf returns a key that is the same for ranks of one machine, as far as machines are known.
func machineOf(ranks []Info, rank int) any {
	if at := ranks[rank].Place; at.SameNetwork(at) {
		return machine.Place{Kernel: at.Kernel, Network: at.Network}
	}
	return rank
}

// roundTrip returns how long a message to s and back takes, as far as s knows, or 0.
func roundTrip(s store.Store) time.Duration {
	if measures, ok := s.(interface{ RoundTrip() time.Duration }); ok {
		return measures.RoundTrip()
	}
	return 0
}
