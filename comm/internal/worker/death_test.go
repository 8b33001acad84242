package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// TestConsequencesOfADeath: operations fail before the agent has said who died. Their errors name the cause all the same.
func TestConsequencesOfADeath(t *testing.T) {
	for _, kind := range []diagnosis.Kind{diagnosis.PeerFailed, diagnosis.Closed} {
		w := &World{World: &core.World{WorldConfig: core.WorldConfig{Peers: make([]core.Peer, 3)}}, round: membership.NewRound(1)}
		word := env.Round{Round: 1, Over: true, Died: []death.Death{{Rank: 2, ExitCode: -9, Cause: death.Hang}}}
		time.AfterFunc(20*time.Millisecond, func() { w.round.End(word) })
		f := w.withDeath(&diagnosis.Failure{Kind: kind, Rank: 1})
		if died, ok := errors.AsType[*DeathError](f.Err); f.Rank != 2 || !ok || died.ExitCode != -9 || died.Cause != death.Hang {
			t.Errorf("%s: %+v, want that rank 2 has died", kind, f)
		}
	}
}

// TestAwaitsTheAgentOnce: an agent that is silent holds up the first failure of a world, and not those that follow.
func TestAwaitsTheAgentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &World{World: &core.World{WorldConfig: core.WorldConfig{Peers: make([]core.Peer, 3)}}, round: membership.NewRound(1)}
		begun := time.Now()
		for range 3 {
			if f := w.withDeath(&diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: 1}); f.Rank != 1 || f.Err != nil {
				t.Errorf("%+v", f)
			}
		}
		if took := time.Since(begun); took != endpoint.RevokeTimeout {
			t.Errorf("they take %v, want %v", took, endpoint.RevokeTimeout)
		}
	})
}

// TestRanksLeaveForTheNextRound: that a rank has left is the end of the round, if it is over, and a broken connection is not.
func TestRanksLeaveForTheNextRound(t *testing.T) {
	for kind, want := range map[diagnosis.Kind]diagnosis.Kind{diagnosis.Closed: diagnosis.Revoked, diagnosis.PeerFailed: diagnosis.PeerFailed} {
		w := &World{World: &core.World{WorldConfig: core.WorldConfig{Peers: make([]core.Peer, 3)}}, round: membership.NewRound(1)}
		w.round.End(env.Round{Round: 1, Over: true, Why: "rank 2 revoked it"})
		if f := w.withDeath(&diagnosis.Failure{Kind: kind, Rank: 1}); f.Kind != want {
			t.Errorf("%s: %+v, want %s", kind, f, want)
		}
	}
}
