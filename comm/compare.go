package comm

import (
	"errors"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/shm"
)

// compare makes sure that other members have made the same calls as this rank, as far as they have told: it waits for nobody. It
// returns the error if they have not, unless a call has returned that already.
func (g *Group) compare() error {
	last := g.turns.started()
	seq, idle := g.turns.seize()
	if idle {
		if t := g.localTeam(); t != nil && g.lane.Usable() {
			if m, ok := errors.AsType[*shm.Mismatch](t.CompareAll()); ok {
				g.lane.Fail(g.asMismatch(m))
			}
		}
		g.pass(seq)
	}
	g.lane.CompareAll()
	err := g.lane.Err()
	if f, ok := errors.AsType[*endpoint.Failure](err); !ok || f.Kind != endpoint.Mismatched || g.told.Load() {
		return nil
	}
	g.saveFlight(err)
	return g.failure("Close", last, 1, err)
}

// localTeam is the team of the members here, if there is one. It is for who has the turn.
func (g *Group) localTeam() *shm.Team {
	if g.nodes != nil {
		return g.nodes.team
	}
	return g.team.Load()
}

// tells notes that a call on g returns err.
func (g *Group) tells(err error) {
	if m, ok := errors.AsType[*MismatchError](err); ok && m.First > 0 {
		g.told.Store(true)
	}
}
