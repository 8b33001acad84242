package embedded

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// FuzzAnswer: what another server says takes no more memory than it is long.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"cluster":"c","server":"s","founds":true}`))
	f.Add([]byte(`[{"id":1,"peerURLs":["http://a:1"],"name":"n"},null,{}]`))
	f.Add(bytes.Repeat([]byte("[{},"), 100))
	f.Fuzz(func(t *testing.T, text []byte) {
		testkit.AllocatesAtMost(t, 512*len(text), func() {
			var is founding
			_ = readAnswer(bytes.NewReader(text), &is)
			var members []*membership.Member
			_ = readAnswer(bytes.NewReader(text), &members)
		})
	})
}

// TestAnswerWithoutEnd is read up to its limit.
func TestAnswerWithoutEnd(t *testing.T) {
	endless := io.MultiReader(bytes.NewReader([]byte(`"`)), repeat('x'))
	testkit.AllocatesAtMost(t, 16*maxSurvey, func() {
		if err := readAnswer(endless, new(founding)); err == nil {
			t.Error("an answer without end is read")
		}
	})
}

// repeat reads as one byte again and again.
type repeat byte

func (r repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

// TestSlowAnswers: another server that takes longer to answer than the first try waits, as on a busy machine, is heard all the same.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	l, other := listen(t, "127.0.0.1")
	_ = l.Close() // only its port for members answers
	_, self := listen(t, "127.0.0.1")
	s := &Server{config: Config{Self: self, Members: []rendezvous.Endpoint{self, other}, Job: t.Name(), Waiting: func(string) {}}}
	if err := s.connectPeers(); err != nil {
		t.Fatal(err)
	}
	peers, err := net.Listen("tcp", peerOf(other).String())
	if err != nil {
		t.Fatal(err)
	}
	slow := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(surveyTime * 3 / 2):
			_ = json.NewEncoder(w).Encode(founding{s.config.cluster(), "slow", true})
		case <-r.Context().Done(): // nobody waits for it any more
		}
	})}
	go func() { _ = slow.Serve(peers) }()
	t.Cleanup(func() { _ = slow.Close() })
	if members, err := s.begin(bounded(t)); err != nil || members != nil {
		t.Errorf("begins with %v, %v", members, err)
	}
}
