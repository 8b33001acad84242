package guard

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPhases(t *testing.T) {
	for _, tt := range []struct {
		from phase
		want [5]phase // on stopAsked, killAsked, agentLost, timeOver, allEnded
	}{
		{running, [5]phase{stopping, askedAll, killing, askedAll, leaving}},
		{stopping, [5]phase{stopping, askedAll, killing, askedAll, leaving}},
		{leaving, [5]phase{leaving, askedAll, killing, askedSession, leaving}},
		{askedSession, [5]phase{askedSession, askedAll, killing, askedAll, askedSession}},
		{askedAll, [5]phase{askedAll, askedAll, killing, killing, askedAll}},
		{killing, [5]phase{killing, killing, killing, killing, killing}},
	} {
		for h, want := range tt.want {
			if got := tt.from.next(trigger(h)); got != want {
				t.Errorf("%d on %d: %d, want %d", tt.from, h, got, want)
			}
		}
	}
}

func TestPhasesNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := running
		for _, h := range rapid.SliceOf(rapid.SampledFrom([]trigger{stopAsked, killAsked, agentLost, timeOver, allEnded})).Draw(t, "happenings") {
			was := p
			if p = p.next(h); p < was {
				t.Fatalf("from %d to %d on %d", was, p, h)
			}
			if _, timed := lasts[p]; h != stopAsked && p != killing && !timed {
				t.Fatalf("%d on %d leaves the gang alive", p, h)
			}
		}
	})
}
