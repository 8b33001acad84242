package agent

import (
	"context"
	"fmt"
	"reflect"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
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

// revocableGang lives on.
type revocableGang struct {
	*fakeGang
	revocations chan death.Death
	revoked     chan struct{}
}

func (g revocableGang) Revoke(_ syscall.Signal, why string, died []death.Death) {
	g.record(fmt.Sprintf("revoked: %s%+v", why, died))
	close(g.revoked)
}
func (g revocableGang) Revocations() <-chan death.Death { return g.revocations }
func (g revocableGang) Revoked() <-chan struct{}        { return g.revoked }
func (g revocableGang) Notify(died []death.Death)       { g.record(fmt.Sprintf("reported: %+v", died)) }

// listed is a rendezvous whose rounds are given.
type listed struct {
	rendezvous.Rendezvous
	rounds []rendezvous.Round
	ends   []error // of the rounds, after a minute each
	next   int
}

func (l *listed) Join(context.Context, rendezvous.Node) (*rendezvous.Round, error) {
	round, end := rendezvous.Begin(l.rounds[l.next], nil)
	why := l.ends[l.next]
	l.next++
	time.AfterFunc(time.Minute, func() { _ = end(why) })
	return round, nil
}

func (l *listed) Close(context.Context, error) error { return nil }

// TestGoneBetweenRounds: workers that live on learn who was lost after their round, if they were in the one before.
func TestGoneBetweenRounds(t *testing.T) {
	for _, next := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestbed(t, 0, []script{{code: 0}}, []script{{code: 0}})
			self := s.config.Node
			place := rendezvous.Place{WorldSize: 1, RoleWorldSize: 1}
			s.config.Replace = true
			s.config.Rendezvous = &listed{
				rounds: []rendezvous.Round{
					{ID: 1, Size: 1, Node: self, Place: place},
					{ID: next, Size: 1, Node: self, Place: place, Gone: []rendezvous.GoneNode{goneNode}, Why: "b is lost"},
				},
				ends: []error{&rendezvous.NewRoundError{}, &rendezvous.ClosedError{}},
			}
			var last Gang
			s.config.Start = func(ctx context.Context, spec launcher.Spec) (Gang, error) {
				if last != nil {
					close(last.(*fakeGang).kill)
					<-last.Exits()
				}
				last, _ = s.startGang(ctx, spec)
				return revocableGang{fakeGang: last.(*fakeGang), revoked: make(chan struct{})}, nil
			}
			if err := Run(t.Context(), s.config); err != nil {
				t.Error(err)
			}
			want := []string{"0s start", "1m0s revoked: []"}
			if next == 2 {
				want = append(want, fmt.Sprintf("1m0s reported: %+v", goneDeaths))
			}
			s.wantStory(append(want, "1m0s start", "2m0s stop terminated")...)
		})
	}
}
