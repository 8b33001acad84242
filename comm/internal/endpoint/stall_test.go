package endpoint

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/alloctest"
)

// answerTo asks rank 1 about collective seq of a group and returns what it says.
func answerTo(t *testing.T, conn net.Conn, group, seq uint64) *report {
	t.Helper()
	write(t, conn, header{kind: kindAsk, group: group, seq: seq}, nil)
	h, err := readHeader(conn)
	if err != nil || h.kind != kindAnswer || h.group != group || h.seq != seq {
		t.Fatalf("got %+v, %v, want an answer", h, err)
	}
	doc := make([]byte, h.size)
	if _, err := io.ReadFull(conn, doc); err != nil {
		t.Fatal(err)
	}
	r := decodeReport(doc, 1000) // ranks
	if r == nil {
		t.Fatalf("the answer is %.200s", doc)
	}
	return r
}

func TestQuestionsAreAnsweredByTheReader(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		if got := answerTo(t, conn, 9, 1); got.Doing.String() != "it has not made the group" || got.At != (called{}) {
			t.Errorf("of a group that it does not know it says %+v", got)
		}
		if got := answerTo(t, conn, 1, 1); got.Seq != 0 || got.At != (called{}) || got.Doing.String() != "it has called nothing on the group" {
			t.Errorf("before any call it says %+v", got)
		}
		if err := l.Begin(1, Call{Op: 7}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if got := answerTo(t, conn, 1, 1); got.Seq != 1 || got.At.Seq != 1 || got.At.Call.Op != 7 || got.Doing.String() != "it is in call 7 #1, which began 3s ago" {
			t.Errorf("in a collective it says %+v", got)
		}
		l.End(1, nil)
		time.Sleep(time.Second)
		if got := answerTo(t, conn, 1, 2); got.Seq != 1 || got.At.Call.Op != 7 || got.Doing.String() != "its last call was call 7 #1, which ended 1s ago" {
			t.Errorf("after it it says %+v", got)
		}
	})
}

func TestWaitsAreToldAlong(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		r := l.Recv(0, 5, 0, Call{Op: 2}, nil)
		failed := make(chan error)
		go func() { failed <- r.Wait(t.Context(), minute) }()
		if h, err := readHeader(conn); err != nil || h.kind != kindAsk || h.group != 1 || h.seq != 0 {
			t.Fatalf("got %+v, %v, want a question", h, err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		doc, err := json.Marshal(&report{Doing: doing{Text: "it sleeps"}, Chain: []Wait{{Rank: 0, For: 1, In: "Recv #9"}}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, conn, header{kind: kindAnswer, group: 1, size: uint64(len(doc))}, doc)
		synctest.Wait()
		f := l.Flight()
		if want := []Wait{{Rank: 1, For: 0, In: "call 2 #1"}}; !slices.Equal(f.Waits, want) {
			t.Errorf("it waits %v, want %v", f.Waits, want)
		}
		// No more answers come, so that it is silence that fails it.
		wantFailure(t, <-failed, PeerFailed, 0)
	})
}

func TestQuestionsCannotFillMemory(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		for range 1000 { // and reads no answer
			write(t, conn, header{kind: kindAsk, group: 1}, nil)
		}
		synctest.Wait()
		l.ep.mu.Lock()
		defer l.ep.mu.Unlock()
		if n := len(l.ep.peers[0].out); n > mostAnswers {
			t.Errorf("%d answers wait to be written", n)
		}
	})
}

func TestAnswersOfNonsenseEndTheStream(t *testing.T) {
	for _, doc := range []string{
		"", "nonsense", `{"chain":[{"rank":2,"for":0}]}`, `{"chain":[{"rank":0,"for":-1}]}`, `{"blame":{"rank":-1}}`,
		`{"doing":{"text":"` + strings.Repeat("x", longestText+1) + `"}}`,
		`{"chain":[` + strings.Repeat(`{"rank":0,"for":1},`, longestChain) + `{"rank":0,"for":1}]}`,
	} {
		byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
			r := l.Recv(0, 0, 0, Call{}, nil)
			write(t, conn, header{kind: kindAnswer, group: 1, size: uint64(len(doc))}, []byte(doc))
			wantFailure(t, r.Wait(t.Context(), minute), PeerFailed, 0)
		})
	}
}

// The largest report fits, whatever has been said to this rank.
func TestReportsAreBounded(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		s := l.Recv(0, 0, 0, Call{}, nil).stall(time.Now(), minute)
		defer s.close()
		l.ep.mu.Lock()
		s.heard = &report{Blame: &blame{0, doing{Text: strings.Repeat("\x01", longestText)}}}
		for i := range longestChain {
			s.heard.Chain = append(s.heard.Chain, Wait{Rank: 100 + i, For: 101 + i, In: strings.Repeat("\x01", longestText)})
		}
		l.ep.mu.Unlock()
		if got := answerTo(t, conn, 1, 0); got.Blame == nil || len(got.Blame.Text) != longestText || len(got.Chain) == 0 {
			t.Errorf("got a report without blame, or with another")
		}
	})
}

func TestARollCallEndsWithTheEndpoint(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		if err := l.Begin(1, Call{}, 0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		l.Go(func() { l.RollCall(context.Background(), 1, time.Second) })
		synctest.Wait()
		if err := l.ep.Close(); err != nil || time.Since(start) > flushTimeout { // which the other side does not end sooner
			t.Errorf("Close took %v: %v", time.Since(start), err)
		}
	})
}

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"seq":3,"at":{"Op":1},"doing":{"text":"it sleeps","ago":5},"chain":[{"rank":1,"for":2,"in":"Recv #1"}],"blame":{"rank":2,"text":"sleeps"}}`))
	f.Add([]byte(`{"chain":[{"rank":9}]}`))
	f.Add([]byte(`nonsense`))
	f.Fuzz(func(t *testing.T, b []byte) {
		alloctest.AtMost(t, 64*len(b), func() { decodeReport(b, 4) })
		r := decodeReport(b, 4)
		if r == nil {
			return
		}
		ranks := []int{}
		for _, w := range r.Chain {
			ranks = append(ranks, w.Rank, w.For)
		}
		if r.Blame != nil {
			ranks = append(ranks, r.Blame.Rank)
		}
		if len(r.Chain) > longestChain || slices.ContainsFunc(ranks, func(n int) bool { return n < 0 || n > 3 }) {
			t.Errorf("%q was read as %+v", b, r)
		}
	})
}
