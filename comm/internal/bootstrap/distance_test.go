package bootstrap

import (
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
)

func TestAreFar(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		first time.Duration // of rank 0
		trips []time.Duration
		want  bool
	}{
		{want: false},
		{trips: []time.Duration{0, 0, 0}, want: false},                      // unknown
		{trips: []time.Duration{50_000, 200_000, farAway - 1}, want: false}, // a machine room
		{trips: []time.Duration{100 * ms, 50_000, 60_000}, want: false},     // one is far away
		{trips: []time.Duration{100 * ms, 50_000}, want: false},             // half of them
		{trips: []time.Duration{0, 0, 50 * ms}, want: false},                // of most it is not known
		{trips: []time.Duration{farAway, farAway}, want: true},
		{trips: []time.Duration{10 * ms, 14 * ms, 90 * ms}, want: true},
		{trips: []time.Duration{1 << 62}, want: true},
		{trips: []time.Duration{-1 << 62}, want: false},
		{first: farAway - 1, trips: []time.Duration{10 * ms}, want: true},
		{first: farAway, trips: []time.Duration{10 * ms}, want: false}, // the store is elsewhere
	} {
		ranks := []Info{on("a", c.first), on("a", 10*ms)} // two here, which do not count
		for _, trip := range c.trips {
			ranks = append(ranks, on("b", trip))
		}
		if got := areFar(ranks); got != c.want {
			t.Errorf("%v: %t, want %t", c.trips, got, c.want)
		}
	}
}

// on is a rank on a machine.
func on(machineName string, trip time.Duration) Info {
	return Info{Peer: core.Peer{Place: machine.Place{Kernel: machineName, Network: "n"}}, RoundTrip: trip}
}

func TestDistances(t *testing.T) {
	unknown := []Info{{}, {RoundTrip: farAway}, {RoundTrip: 1}, {}} // each may be on a machine of its own
	if got := distances(unknown); !slices.Equal(got, []core.Distance{core.Near, core.Far, core.Near, core.UnknownDistance}) {
		t.Errorf("machines that are not known: %v", got)
	}
	ranks := []Info{on("a", 0), on("b", 0), on("a", time.Second), on("b", -1), on("b", farAway-1), on("b", farAway), on("c", farAway), on("d", 0)}
	want := []core.Distance{core.Near, core.Near, core.Near, core.Near, core.Near, core.Near, core.Far, core.UnknownDistance}
	if got := distances(ranks); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
