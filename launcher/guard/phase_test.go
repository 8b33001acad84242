package guard

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPhases(t *testing.T) {
	for _, tt := range []struct {
		from phase
		on   trigger
		want phase
	}{
		{running, stopAsked, stopping},
		{running, killAsked, killing},
		{running, agentLost, killing},
		{running, allEnded, killing},
		{stopping, stopAsked, stopping},
		{stopping, killAsked, killing},
		{stopping, agentLost, killing},
		{stopping, graceOver, killing},
		{stopping, allEnded, killing},
		{killing, stopAsked, killing},
		{killing, killAsked, killing},
		{killing, agentLost, killing},
		{killing, graceOver, killing},
		{killing, allEnded, killing},
	} {
		if got := tt.from.next(tt.on); got != tt.want {
			t.Errorf("%d on %d: %d, want %d", tt.from, tt.on, got, tt.want)
		}
	}
}

func TestPhasesNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := running
		for _, h := range rapid.SliceOf(rapid.SampledFrom([]trigger{stopAsked, killAsked, agentLost, graceOver, allEnded})).Draw(t, "happenings") {
			was := p
			if p = p.next(h); p < was {
				t.Fatalf("from %d to %d on %d", was, p, h)
			}
			if h != stopAsked && p != killing {
				t.Fatalf("%d on %d leaves the gang alive", p, h)
			}
		}
	})
}
