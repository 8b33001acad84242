package guard

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPhases(t *testing.T) {
	for _, tt := range []struct {
		from phase
		want [4]phase // on stopAsked, killAsked, timeOver, allEnded
	}{
		{running, [4]phase{stopping, leaving, leaving, leaving}},
		{stopping, [4]phase{stopping, leaving, leaving, leaving}},
		{leaving, [4]phase{leaving, leaving, asked, leaving}},
		{asked, [4]phase{asked, asked, urged, asked}},
		{urged, [4]phase{urged, urged, killing, urged}},
		{killing, [4]phase{killing, killing, killing, killing}},
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
		for _, h := range rapid.SliceOf(rapid.SampledFrom([]trigger{stopAsked, killAsked, timeOver, allEnded})).Draw(t, "happenings") {
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
