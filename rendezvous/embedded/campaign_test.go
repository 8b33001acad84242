package embedded

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/gorun/gorun/rendezvous"
)

// patientElections keeps a busy machine from electing another leader, as long as the test runs. The test must not be parallel.
func patientElections(t *testing.T) {
	t.Helper()
	was := several
	several.tick, several.election = 500, 50_000 // the most that etcd takes
	t.Cleanup(func() { several = was })
}

// TestCampaignDelays: founders that take another one for the first leader do not ask for the election at the same time.
func TestCampaignDelays(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for _, c := range three(t, nil) {
		if delay := c.campaignDelay(c.Self.String()); delay != 0 {
			t.Errorf("the first waits %v", delay)
		}
		delay := c.campaignDelay("another:1")
		if delay < campaignStep || delay > 3*campaignStep || seen[delay] {
			t.Errorf("%s waits %v", c.Self, delay)
		}
		seen[delay] = true
	}
}

// TestTheFirstFounderLeads: members that found a cluster do not wait for their election timeouts.
func TestTheFirstFounderLeads(t *testing.T) {
	patientElections(t)
	configs := three(t, secret)
	begun := time.Now()
	servers := startAll(t, configs)
	if took := time.Since(begun); took > time.Duration(several.election)*time.Millisecond {
		t.Errorf("they took %v", took)
	}
	leader := ""
	for i, s := range servers {
		status, err := client(t, clientTLS(t, secret), configs[i].Self).Status(bounded(t), configs[i].Self.String())
		if err != nil {
			t.Fatal(err)
		}
		if status.Leader == uint64(s.member.Server.MemberID()) {
			leader = configs[i].Self.String()
		}
	}
	if leader == "" {
		t.Error("nobody is the leader")
	}
}

// TestFirstLeader: the founders agree on one of them that is there.
func TestFirstLeader(t *testing.T) {
	a, b, c := rendezvous.Endpoint{Host: "a", Port: 1}, rendezvous.Endpoint{Host: "b", Port: 1}, rendezvous.Endpoint{Host: "c", Port: 1}
	absent := errors.New("connection refused")
	members := []*membership.Member{{}}
	for name, x := range map[string]struct {
		self    rendezvous.Endpoint
		reports []report
		want    string
	}{
		"all are there":               {a, []report{{from: b, founds: true}, {from: c, founds: true}}, "a:1"},
		"all are there, the last one": {c, []report{{from: a, founds: true}, {from: b, founds: true}}, "a:1"},
		"the first is not there":      {b, []report{{from: a, err: absent}, {from: c, founds: true}}, "b:1"},
		"the others have decided":     {a, []report{{from: b, founds: true, first: "b:1"}, {from: c, founds: true, first: "b:1"}}, "b:1"},
		"another has decided":         {c, []report{{from: a, err: absent}, {from: b, founds: true, first: "a:1"}}, "a:1"},
		"there is a cluster":          {a, []report{{from: b, founds: true}, {from: c, members: members}}, ""},
	} {
		if got := firstLeader(x.self, x.reports); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// TestNobodyCampaignsAgainstALeader: a server that is late, or that comes back, does not become the leader by coming.
func TestNobodyCampaignsAgainstALeader(t *testing.T) {
	patientElections(t)
	configs := three(t, secret)
	slices.SortFunc(configs, func(a, b Config) int { return strings.Compare(a.Self.String(), b.Self.String()) })
	late, others := configs[0], configs[1:]
	startAll(t, others)
	c := client(t, clientTLS(t, secret), others[0].Self)
	before := leaderOf(t, c)
	startAll(t, []Config{late})
	if after := leaderOf(t, c); after.Leader != before.Leader || after.RaftTerm != before.RaftTerm {
		t.Errorf("before: leader %x of term %d, after: leader %x of term %d", before.Leader, before.RaftTerm, after.Leader, after.RaftTerm)
	}
}

// TestLateCampaign: a member that asks for the first election when it has been held deposes nobody, nor does the leader itself.
func TestLateCampaign(t *testing.T) {
	patientElections(t)
	configs := three(t, nil)
	servers := startAll(t, configs)
	c := client(t, nil, configs[0].Self)
	before := leaderOf(t, c)
	for i, s := range servers {
		if err := s.timeoutNow(); err != nil {
			t.Fatal(err)
		}
		get(t, client(t, nil, configs[i].Self), "a") // which the member asks its leader for, after that message
	}
	if after := leaderOf(t, c); after.Leader != before.Leader || after.RaftTerm != before.RaftTerm {
		t.Errorf("before: leader %x of term %d, after: leader %x of term %d", before.Leader, before.RaftTerm, after.Leader, after.RaftTerm)
	}
}

func leaderOf(t *testing.T, c *clientv3.Client) *clientv3.StatusResponse {
	t.Helper()
	status, err := c.Status(bounded(t), c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	return status
}
