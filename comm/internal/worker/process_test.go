package worker

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/membership"
)

// TestWorld: a world that is opened later does not take the place of one that is open.
func TestWorld(t *testing.T) {
	first, second, ofRound := &World{}, &World{}, &World{round: membership.NewRound(1)}
	for _, c := range []struct {
		name string
		open []*World
		want *World
	}{
		{"none", nil, nil},
		{"two", []*World{first, second}, first},
		{"that of the round", []*World{first, ofRound, second}, ofRound},
	} {
		if got := (&Process{worlds: c.open}).World(); got != c.want {
			t.Errorf("%s: another world is returned", c.name)
		}
	}
}
