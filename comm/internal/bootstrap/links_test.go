package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
)

func TestFarLinks(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		first time.Duration // of rank 0
		trips []time.Duration
		want  string
	}{
		{want: ""},
		{trips: []time.Duration{0, 0, 0}, want: ""},                      // unknown
		{trips: []time.Duration{50_000, 200_000, farAway - 1}, want: ""}, // a machine room
		{trips: []time.Duration{100 * ms, 50_000, 60_000}, want: ""},     // one is far away
		{trips: []time.Duration{100 * ms, 50_000}, want: ""},             // half of them
		{trips: []time.Duration{0, 0, 50 * ms}, want: ""},                // of most it is not known
		{trips: []time.Duration{farAway, farAway}, want: "network=latency:2ms,rate:1Gbit"},
		{trips: []time.Duration{8*ms - 1}, want: "network=latency:2ms,rate:1Gbit"},
		{trips: []time.Duration{8 * ms}, want: "network=latency:8ms,rate:1Gbit"},
		{trips: []time.Duration{10 * ms, 14 * ms, 90 * ms}, want: "network=latency:8ms,rate:1Gbit"},
		{trips: []time.Duration{300 * ms}, want: "network=latency:128ms,rate:1Gbit"},
		{trips: []time.Duration{1 << 62}, want: "network=latency:512ms,rate:1Gbit"},
		{trips: []time.Duration{-1 << 62}, want: ""},
		{first: farAway - 1, trips: []time.Duration{10 * ms}, want: "network=latency:8ms,rate:1Gbit"},
		{first: farAway, trips: []time.Duration{10 * ms}, want: ""}, // the store is elsewhere
	} {
		ranks := []Info{on("a", c.first), on("a", 10*ms)} // two here, which do not count
		for _, trip := range c.trips {
			ranks = append(ranks, on("b", trip))
		}
		if got := farLinks(ranks); got != c.want {
			t.Errorf("%v: %q, want %q", c.trips, got, c.want)
		} else if _, err := cost.Parse(got); err != nil {
			t.Error(err)
		}
	}
}

// on is a rank on a machine.
func on(machineName string, trip time.Duration) Info {
	return Info{Peer: core.Peer{Place: machine.Place{Kernel: machineName, Network: "n"}}, RoundTrip: trip}
}

func TestSetsLatency(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "network=rate:1Gbit; machine=latency:1us": false, "network=latency:0s": true, "network=rate:1Gbit,latency:8ms": true, "network=speed:1": false,
	} {
		if got := setsLatency(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestGapsOf(t *testing.T) {
	for _, c := range []struct {
		machines string   // of ranks, a letter for each
		said     []string // by ranks
		want     []int
		err      string
	}{
		{machines: "abc", said: []string{"", "", ""}},
		{machines: "ab", said: []string{"network=latency:7us,rate:1Gbit", "network=latency:7us,rate:1Gbit"}},
		{machines: "ab", said: []string{"network=latency:7us,rate:1Gbit", "network=rate:1000Mbit"}},
		{machines: "abc", said: []string{"network=latency:7us", "network=latency:9us", "machine=rate:3Gbit"}},
		{machines: "aba", said: []string{"network=rate:1Gbit", "", ""}},
		{machines: "aab", said: []string{"network=rate:10Gbit", "network=rate:1Gbit", "network=rate:1Gbit"}, want: []int{8000, 8000, 8000}},
		{machines: "aab", said: []string{"", "network=rate:1Gbit", "network=rate:1Gbit"}, want: []int{8000, 8000, 8000}},
		{machines: "abc", said: []string{"network=rate:1Gbit", "network=rate:250Mbit", ""}, want: []int{8000, 32000, 0}},
		{machines: "abc", said: []string{"", "network=rate:10Gbit", "network=latency:9us,rate:0.5Gbit"}, want: []int{0, 800, 16000}},
		{machines: "abbab", said: []string{"", "", "network=rate:0.5Gbit", "", "network=rate:2Gbit"}, want: []int{0, 16000, 16000, 0, 16000}},
		{machines: "??", said: []string{"network=rate:1Gbit", "network=rate:2Gbit"}, want: []int{8000, 4000}},
		{machines: "ab", said: []string{"", "network=speed:1"}, err: `rank 1 on b says of its links what this build of comm does not know: link "network=speed:1"`},
	} {
		var ranks []Info
		for i, said := range c.said {
			r := on(strings.Trim(c.machines[i:i+1], "?"), 0)
			r.Host, r.Links = r.Kernel, said
			ranks = append(ranks, r)
		}
		got, err := gapsOf(ranks)
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) || (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%q: %v, %v; want %v, %q", c.said, got, err, c.want, c.err)
		}
	}
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
