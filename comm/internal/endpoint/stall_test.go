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

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// answerTo asks rank 1 about collective seq of a group and returns what it says.
func answerTo(t *testing.T, conn net.Conn, group, seq uint64) *diagnosis.WaitReport {
	t.Helper()
	write(t, conn, wire.Header{Kind: wire.Ask, Context: group, Fingerprint: call.Fingerprint{Seq: seq}}, nil)
	h, err := readHeader(conn)
	if err != nil || h.Kind != wire.Answer || h.Context != group || h.Seq != seq {
		t.Fatalf("got %+v, %v, want an answer", h, err)
	}
	doc := make([]byte, h.Size)
	if _, err := io.ReadFull(conn, doc); err != nil {
		t.Fatal(err)
	}
	r := diagnosis.DecodeWaitReport(doc, 1000) // ranks
	if r == nil {
		t.Fatalf("the answer is %.200s", doc)
	}
	return r
}

func TestQuestionsAreAnsweredByTheReader(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		if got := answerTo(t, conn, 9, 1); got.Activity.String() != "it has not made the group" || got.At != (call.Fingerprint{}) {
			t.Errorf("of a group that it does not know it says %+v", got)
		}
		if got := answerTo(t, conn, 1, 1); got.Seq != 0 || got.At != (call.Fingerprint{}) || got.Activity.String() != "it has called nothing on the group" {
			t.Errorf("before any call it says %+v", got)
		}
		if err := comm.Begin(1, call.Call{Kind: 7}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if got := answerTo(t, conn, 1, 1); got.Seq != 1 || got.At.Seq != 1 || got.At.Call.Kind != 7 || got.Activity.String() != "it is in ReduceScatterV #1, which began 3s ago" {
			t.Errorf("in a collective it says %+v", got)
		}
		comm.End(1, nil)
		time.Sleep(time.Second)
		if got := answerTo(t, conn, 1, 2); got.Seq != 1 || got.At.Call.Kind != 7 || got.Activity.String() != "its last call was ReduceScatterV #1, which ended 1s ago" {
			t.Errorf("after it it says %+v", got)
		}
	})
}

// counter is a backend whose collective goes on as a test says.
type counter struct{ n uint64 }

func (c *counter) Moves() uint64 { return c.n }
func (c *counter) Interrupt()    {}

// TestProgressIsTold: who asks again learns whether the collective has gone on meanwhile, by messages or otherwise. So does
// another rank that asks at the same time.
func TestProgressIsTold(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		backend := new(counter)
		comm.Attach(backend)
		begin := func(seq uint64) {
			if err := comm.Begin(seq, call.Call{Kind: 7}, 0); err != nil {
				t.Fatal(err)
			}
		}
		begin(1)
		for i, c := range []struct {
			happens func()
			want    string
		}{
			{func() {}, "it is in ReduceScatterV #1, which began"},
			{func() {}, "it is in ReduceScatterV #1, which makes no progress, and began"},
			{func() { comm.ep.mu.Lock(); backend.n++; comm.ep.mu.Unlock() }, "it is in ReduceScatterV #1, which makes progress, and began"},
			{func() { comm.Moved(1, 5, 5) }, "it is in ReduceScatterV #1, which makes progress, and began"},
			{func() { comm.End(1, nil); begin(2) }, "it is in ReduceScatterV #2, which began"},
		} {
			c.happens()
			for range 2 {
				if got := answerTo(t, conn, 1, 1).Activity.Text; got != c.want {
					t.Errorf("question %d: it says %q, want %q", i+1, got, c.want)
				}
			}
			time.Sleep(observeAfter)
		}
	})
}

func TestWaitsAreToldAlong(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		r := comm.Recv(0, 5, 0, call.Call{Kind: 2}, nil)
		failed := make(chan error)
		go func() { failed <- r.Wait(t.Context(), minute) }()
		if h, err := readHeader(conn); err != nil || h.Kind != wire.Ask || h.Context != 1 || h.Seq != 0 {
			t.Fatalf("got %+v, %v, want a question", h, err)
		}
		doc, err := json.Marshal(&diagnosis.WaitReport{Activity: diagnosis.Activity{Text: "it sleeps"}, Chain: []diagnosis.Wait{{Rank: 0, For: 1, In: "Recv #9"}}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, conn, wire.Header{Kind: wire.Answer, Context: 1, Size: uint64(len(doc))}, doc)
		synctest.Wait()
		f := comm.Flight()
		if want := []diagnosis.Wait{{Rank: 1, For: 0, In: "Recv #1 (tag 5)"}}; !slices.Equal(f.Waits, want) {
			t.Errorf("it waits %v, want %v", f.Waits, want)
		}
		// Nor does a wait keep it from saying why it has not made a group, for which others wait.
		if got := answerTo(t, conn, 9, 1); len(got.Chain) == 0 || got.Chain[0] != (diagnosis.Wait{Rank: 1, For: 0, In: "Recv #1 (tag 5)"}) {
			t.Errorf("of a group that it has not made it says %+v, want that it waits", got)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		// No more answers come, so that it is silence that fails it.
		wantFailure(t, <-failed, diagnosis.PeerFailed, 0)
	})
}

func TestQuestionsCannotFillMemory(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		for range 1000 { // and reads no answer
			write(t, conn, wire.Header{Kind: wire.Ask, Context: 1}, nil)
		}
		synctest.Wait()
		comm.ep.mu.Lock()
		defer comm.ep.mu.Unlock()
		if n := comm.ep.peers[0].out.Len(); n > mostAnswers {
			t.Errorf("%d answers wait to be written", n)
		}
	})
}

func TestAnswersOfNonsenseEndTheStream(t *testing.T) {
	for _, doc := range []string{
		"", "nonsense", `{"chain":[{"rank":2,"for":0}]}`, `{"chain":[{"rank":0,"for":-1}]}`, `{"suspect":{"rank":-1}}`,
		`{"activity":{"text":"` + strings.Repeat("x", diagnosis.MaxText+1) + `"}}`,
		`{"chain":[` + strings.Repeat(`{"rank":0,"for":1},`, 64) + `{"rank":0,"for":1}]}`,
	} {
		byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
			r := comm.Recv(0, 0, 0, call.Call{}, nil)
			write(t, conn, wire.Header{Kind: wire.Answer, Context: 1, Size: uint64(len(doc))}, []byte(doc))
			wantFailure(t, r.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		})
	}
}

func TestAMonitorEndsWithTheEndpoint(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		if err := comm.Begin(1, call.Call{}, 0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		comm.Go(func() { comm.Monitor(context.Background(), 1, time.Second) })
		synctest.Wait()
		if err := comm.ep.api().Close(); err != nil || time.Since(start) > flushTimeout { // which the other side does not end sooner
			t.Errorf("Close took %v: %v", time.Since(start), err)
		}
	})
}
