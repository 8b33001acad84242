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
// that there is none. Nobody has been the leader of a cluster that is being founded, so the founders agree on one, which asks at once. If
// they do not agree, or do not hear each other, they wait as they would have.

const (
	campaignTime  = 200 * time.Millisecond // for which a member asks; raft ignores it until the first members have been written down
	campaignPause = 5 * time.Millisecond
)

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

// campaign makes this member a candidate unless there is a leader, once another one hears it, if there are others. The message is that with
// which a leader of raft hands over (Ongaro, Consensus: Bridging Theory and Practice, 3.10): who gets it does not wait for its election
// timeout.
func (s *Server) campaign() {
	if s.config.several() {
		select {
		case <-s.heard:
		case <-s.member.Server.ReadyNotify():
			return
		case <-s.running.Done():
			return
		}
	}
	self := uint64(s.member.Server.MemberID())
	now := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self}
	for begun := time.Now(); s.member.Server.Leader() == 0 && time.Since(begun) < campaignTime; {
		if s.member.Server.Process(s.running, now) != nil {
			return // it has stopped
		}
		select {
		case <-time.After(campaignPause):
		case <-s.running.Done():
			return
		}
	}
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
