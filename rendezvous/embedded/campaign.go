package embedded

import (
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gorun/gorun/rendezvous"
)

// The members of a new cluster would wait for 0.5 to 1 s before one of them asks to be the first leader, since each of them has to be sure
// that there is none. Nobody has been the leader of a cluster that is being founded, so the founders agree on one, which asks at once, and
// the others soon after, if there is no leader yet: not all may have agreed. If they do not hear each other, they wait as they would have.

const (
	campaignTime  = 500 * time.Millisecond // for which a member asks; raft ignores it until the first members have been written down
	campaignPause = 5 * time.Millisecond
	campaignStep  = 100 * time.Millisecond // between the campaigns of founders that have not agreed
)

// foundingTerm is raft's term in which the first members of a cluster are written down, and in which nobody votes.
const foundingTerm uint64 = 1

// firstLeader returns the endpoint that is to be the first leader of a new cluster: whom another founder has decided for, or else the first
// one of the founders that self knows of. It is empty if there is a cluster that has, or has had, a leader.
func firstLeader(self rendezvous.Endpoint, reports []report) string {
	first := self.String()
	for _, r := range reports {
		switch {
		case r.members != nil:
			return ""
		case r.founds && r.first != "":
			return r.first
		case r.founds:
			first = min(first, r.from.String())
		}
	}
	return first
}

// campaignDelay returns how long this founder waits before it campaigns. The one that is to be the first leader does not wait. The others
// campaign later, each at another time, so that they do not split the votes: they are needed if the founders have not agreed.
func (c *Config) campaignDelay(first string) time.Duration {
	if !c.several() || first == c.Self.String() {
		return 0
	}
	earlier := 0
	for _, e := range c.Members {
		if e.String() < c.Self.String() {
			earlier++
		}
	}
	return time.Duration(earlier+1) * campaignStep
}

// campaign makes this member a candidate unless there is a leader, once another one hears it, if there are others, and after a delay.
func (s *Server) campaign(delay time.Duration) {
	if s.config.several() {
		select {
		case <-s.heard:
		case <-s.member.Server.ReadyNotify():
			return
		case <-s.running.Done():
			return
		}
	}
	select {
	case <-time.After(delay):
	case <-s.member.Server.ReadyNotify():
		return
	case <-s.running.Done():
		return
	}
	for begun := time.Now(); s.member.Server.Leader() == 0 && time.Since(begun) < campaignTime; {
		if s.timeoutNow() != nil {
			return // it has stopped
		}
		select {
		case <-time.After(campaignPause):
		case <-s.running.Done():
			return
		}
	}
}

// timeoutNow gives this member the message with which a leader of raft hands over (Ongaro, Consensus: Bridging Theory and Practice, 3.10):
// who gets it does not wait for its election timeout, and the others vote even if they have a leader. So a founder gets it as one of the
// founding term: raft ignores it if this member has voted since or knows a leader, and nobody who has voted in the next term votes again in
// it. Two founders that both take themselves for the first cannot depose each other, and one that is late cannot depose the leader.
func (s *Server) timeoutNow() error {
	self := uint64(s.member.Server.MemberID())
	now := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self}
	if s.config.several() {
		now.Term = new(foundingTerm)
	}
	return s.member.Server.Process(s.running, now)
}

// A messageStream is the answer to another member that asks for this one's messages.
type messageStream struct {
	http.ResponseWriter
	heard chan<- struct{} // gets an entry when it has begun
}

// Flush sends what has been written. etcd calls it when it has accepted the request.
func (m messageStream) Flush() {
	_ = http.NewResponseController(m.ResponseWriter).Flush() // who asks may be gone
	select {
	case m.heard <- struct{}{}:
	default:
	}
}

// isMessageStream reports whether a request is that for such a stream.
func isMessageStream(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, rafthttp.RaftStreamPrefix+"/message/")
}
