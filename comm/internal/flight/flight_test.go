package flight

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// TestRecorder has a rank carry out collectives with and without a lock. The recorder remembers the last ones of both, in their order.
func TestRecorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			r     Recorder
			trace Trace
			h     call.History
			want  []Record // all, oldest first
		)
		trace.Use()
		t.Repeat(map[string]func(*rapid.T){
			"recorded": func(t *rapid.T) {
				r.TakeOver(&trace)
				seq, c := uint64(len(want)+1), call.Call{Kind: call.Kind(rapid.Uint8().Draw(t, "kind")), Count: rapid.Uint64().Draw(t, "count")}
				f := call.Fingerprint{Seq: seq, Call: c, Before: h.Add(c.Pack()).Before()}
				r.Begin(f, 0, 0)
				r.Moved(seq, 1, 2)
				err := rapid.SampledFrom([]error{nil, errors.New("failed")}).Draw(t, "error")
				r.End(seq, err)
				want = append(want, Record{Fingerprint: f, Sent: 1, Received: 2, Err: err})
			},
			"traced": func(t *rapid.T) {
				for range rapid.IntRange(1, Length+10).Draw(t, "collectives") {
					seq, c := uint64(len(want)+1), call.Call{Kind: 5, Root: int32(len(want))}
					w := h.Add(c.Pack())
					trace.Begin(seq, w)
					trace.End(seq, 3, 4, seq%2 == 0)
					want = append(want, Record{Fingerprint: call.Fingerprint{Seq: seq, Call: c, Before: w.Before()}, Sent: 3, Received: 4})
				}
			},
			"": func(t *rapid.T) {
				r.TakeOver(&trace)
				got, kept := r.All(), want[max(0, len(want)-Length):]
				if len(got) != len(kept) {
					t.Fatalf("it remembers %d, want %d of %d", len(got), len(kept), len(want))
				}
				for i := range got {
					if got[i].Began.IsZero() || got[i].IsUnderWay() {
						t.Fatalf("%d has no time: %+v", i, got[i])
					}
					got[i].Began, got[i].Ended = time.Time{}, time.Time{}
					if got[i] != kept[i] {
						t.Fatalf("got %+v\nwant %+v", got[i], kept[i])
					}
				}
				if n := len(want); n > 0 && (r.Last() != want[n-1].Fingerprint || r.Latest() == nil || r.Latest().IsUnderWay()) {
					t.Fatalf("the last one is %+v, want %+v", r.Last(), want[n-1].Fingerprint)
				}
			},
		})
	})
}

// A collective that has begun is under way until its end has been noted.
func TestATracedCollectiveIsUnderWay(t *testing.T) {
	var r Recorder
	var trace Trace
	if r.TakeOver(&trace); r.Latest().IsUnderWay() || r.Last() != (call.Fingerprint{}) {
		t.Errorf("an empty recorder has %+v", r.Last())
	}
	trace.Use()
	trace.Begin(1, call.Packed{What: 7})
	if r.TakeOver(&trace); !r.Latest().IsUnderWay() || r.Last().Call.Kind != 7 {
		t.Errorf("got %+v", r.Latest())
	}
	trace.End(1, 0, 0, true)
	if r.TakeOver(&trace); r.Latest().IsUnderWay() {
		t.Errorf("got %+v", r.Latest())
	}
}

// What is over at once is numbered with what is not.
func TestNote(t *testing.T) {
	var r Recorder
	r.Note(cpu.Now(), call.Call{Kind: 1}, 3, 4, 5, 0)
	seq := r.Next() // of a probe, of which there is no record
	if n := r.At(1); n == nil || n.IsUnderWay() || n.Peer != 3 || n.Tag != 4 || n.Sent != 5 || seq != 2 || r.At(seq) != nil || r.Latest() != nil {
		t.Errorf("got %+v and %d", n, seq)
	}
}

// TestRecent: what the last operations have moved, of those that have ended and of one that is under way.
func TestRecent(t *testing.T) {
	var r Recorder
	if n, _, _, over := r.Recent(); n != 0 || over != 0 {
		t.Errorf("without operations: %d in %v", n, over)
	}
	for seq := range uint64(Length + 10) {
		r.Begin(call.Fingerprint{Seq: seq + 1}, 0, 0)
		r.Moved(seq+1, 3, 5)
		if seq < Length {
			r.End(seq+1, nil)
		}
	}
	if n, sent, received, over := r.Recent(); n != Length || sent != 3*Length || received != 5*Length || over <= 0 {
		t.Errorf("%d operations in %v, %d bytes sent and %d received", n, over, sent, received)
	}
}
