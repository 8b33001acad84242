package agent

import (
	"reflect"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

var (
	goneNode   = rendezvous.GoneNode{ID: "b", Host: "node-b", FirstRank: 4, Nproc: 2, Why: "b is lost"}
	goneDeaths = []death.Death{
		{Rank: 4, Host: "node-b", Cause: death.Unknown, Why: "its node b is lost"},
		{Rank: 5, LocalRank: 1, Host: "node-b", Cause: death.Unknown, Why: "its node b is lost"},
	}
)

// TestDeathsElsewhere: what this node learns from the rendezvous when a round is over.
func TestDeathsElsewhere(t *testing.T) {
	worker := rendezvous.Failure{Death: death.Death{Host: "node-c", Rank: 7, LocalRank: 1, Pid: 9, ExitCode: -9, OutOfMemory: true, Stderr: []string{"one", "two"}}, Node: "c", Text: "a note\nlast lines on stderr:\none\ntwo"}
	own, self := worker, goneNode
	own.Node, self.ID = "self", "self"
	for name, test := range map[string]struct {
		why  error
		want []death.Death
	}{
		"a node is gone":        {&rendezvous.NewRoundError{Gone: []rendezvous.GoneNode{goneNode}}, goneDeaths},
		"this node is given up": {&rendezvous.NewRoundError{Gone: []rendezvous.GoneNode{self, goneNode}}, goneDeaths},
		"a worker has failed": {&rendezvous.NewRoundError{Failure: &worker},
			[]death.Death{{Rank: 7, LocalRank: 1, Host: "node-c", Pid: 9, ExitCode: -9, OutOfMemory: true, Stderr: []string{"one", "two"}}}},
		"a worker hangs": {&rendezvous.NewRoundError{Failure: hangsFar},
			[]death.Death{{Rank: 5, ExitCode: -9, Cause: death.Hang}}},
		"a worker of this node has": {&rendezvous.NewRoundError{Failure: &own}, nil},
		"a worker has revoked it":   {&rendezvous.NewRoundError{Failure: &rendezvous.Failure{Death: death.Death{Rank: 5, ExitCode: 1, Cause: death.Revoked}, Node: "b"}}, nil},
		"nodes come":                {&rendezvous.NewRoundError{Why: "more nodes have come: 1"}, nil},
		"nothing is known":          {rendezvous.ErrNewRound, nil},
		"the job is closed":         {&rendezvous.ClosedError{}, nil},
	} {
		round, end := rendezvous.Begin(rendezvous.Round{Node: rendezvous.Node{ID: "self"}}, nil)
		_ = end(test.why) // there is no port to close
		if got := deathsElsewhere(round); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestGoneBetweenRounds: workers that live on learn who was lost after their round, if they were in the one before.
func TestGoneBetweenRounds(t *testing.T) {
	gone := []rendezvous.GoneNode{goneNode}
	last := &rendezvous.Round{ID: 1}
	if got := goneSince(last, &rendezvous.Round{ID: 2, Gone: gone}, "self"); !reflect.DeepEqual(got, goneDeaths) {
		t.Errorf("%+v, want %+v", got, goneDeaths)
	}
	if got := goneSince(last, &rendezvous.Round{ID: 3, Gone: gone}, "self"); got != nil {
		t.Errorf("of another round: %+v", got)
	}
	if got := goneSince(nil, &rendezvous.Round{ID: 1, Gone: gone}, "self"); got != nil {
		t.Errorf("before the first round: %+v", got)
	}
}
