package agent

import (
	"errors"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// whyOver says in one line why the round is over, or is about to be.
func (l *loop) whyOver() string {
	if over, ok := errors.AsType[*rendezvous.NewRoundError](l.round.Err()); ok {
		return Printable(over.Why)
	}
	if l.machine.reason == failure {
		x := l.machine.failures()[l.machine.first()]
		return x.Describe()
	}
	return ""
}

// deathsElsewhere returns the workers of other nodes because of which a round is over, as far as is known: one that has failed, or those
// of nodes that are gone.
func deathsElsewhere(round *rendezvous.Round) []death.Death {
	over, ok := errors.AsType[*rendezvous.NewRoundError](round.Err())
	if !ok {
		return nil
	}
	deaths := deathsOf(over.Gone, round.Node.ID)
	if f := over.Failure; f != nil && f.Node != round.Node.ID && f.Cause != death.Revoked {
		deaths = append([]death.Death{f.Death}, deaths...)
	}
	return deaths
}

// deathsOf returns the workers of nodes that are gone. It leaves out this node: the others may have given it up, but its workers live.
func deathsOf(gone []rendezvous.GoneNode, self string) (deaths []death.Death) {
	for _, g := range gone {
		if g.ID == self {
			continue
		}
		for local := range g.Nproc {
			deaths = append(deaths, death.Death{Rank: g.FirstRank + local, LocalRank: local, Host: g.Host, Cause: death.Unknown, Why: "its node " + g.Why})
		}
	}
	return deaths
}
