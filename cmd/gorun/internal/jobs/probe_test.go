package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/control"
)

func TestCheckProbed(t *testing.T) {
	away := errors.New("connection refused")
	at := func(host string, ahead time.Duration) Probed {
		return Probed{Host: host, Addr: host + ":1", Probe: control.Probe{Ahead: ahead, Took: 2 * time.Second}}
	}
	lost := func(host string) Probed { return Probed{Host: host, Addr: host + ":1", Err: away} }
	for name, c := range map[string]struct {
		probed         []Probed
		network, clock string
	}{
		"no job":              {nil, "", ""},
		"well":                {[]Probed{at("a", 0), at("b", time.Second)}, "", ""},
		"one is lost":         {[]Probed{lost("a"), at("b", 0)}, "", ""},
		"cut off":             {[]Probed{lost("a")}, "1 of 1 nodes of the job cannot be reached, such as a at a:1: connection refused", ""},
		"most are away":       {[]Probed{at("a", 0), lost("b"), lost("c")}, "2 of 3 nodes of the job cannot be reached, such as b at b:1: connection refused", ""},
		"slow, but in time":   {[]Probed{at("a", 3*time.Second)}, "", ""},
		"behind":              {[]Probed{at("a", time.Minute)}, "", "the clock of this node is 1m0s behind that of a"},
		"ahead":               {[]Probed{at("a", -time.Hour)}, "", "the clock of this node is 1h0m0s ahead of that of a"},
		"another is wrong":    {[]Probed{at("a", 0), at("b", time.Hour), at("c", time.Millisecond)}, "", ""},
		"most others say so":  {[]Probed{at("a", time.Hour), at("b", 0), at("c", 61*time.Minute)}, "", "the clock of this node is 1h0m0s behind that of a"},
		"only one can be had": {[]Probed{lost("a"), at("b", -time.Hour)}, "", "the clock of this node is 1h0m0s ahead of that of b"},
	} {
		for want, err := range map[string]error{"network " + c.network: CheckNetwork(c.probed), "clock " + c.clock: CheckClock(c.probed)} {
			got := ""
			if err != nil {
				got = err.Error()
			}
			if want != "network "+got && want != "clock "+got {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}
