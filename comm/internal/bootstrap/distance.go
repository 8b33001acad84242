package bootstrap

import (
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/store"
)

// farAway is the round trip from which on a machine is far away: then the number of messages that follow one another
// decides how long a collective takes.
const farAway = 2 * time.Millisecond

// areFar reports whether most ranks on other machines are far away from rank 0. Ranks measure only the way to the
// store. If the store is far away from rank 0, too, that says nothing about the ranks.
func areFar(ranks []Info) bool {
	var trips []time.Duration
	for _, r := range ranks {
		if !r.SameNetwork(ranks[0].Place) {
			trips = append(trips, r.RoundTrip)
		}
	}
	if len(trips) == 0 || ranks[0].RoundTrip >= farAway {
		return false
	}
	slices.Sort(trips)
	return trips[(len(trips)-1)/2] >= farAway
}

// distances returns how far away ranks are from rank 0, as far as they know. Those of one machine are as far away as
// the first of them that knows.
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
