package flight

import (
	"errors"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
)

var anyCollective = rapid.Map(rapid.Uint8Range(uint8(call.KindAllReduce), uint8(call.KindMonitoredBarrier)),
	func(k uint8) call.Kind { return call.Kind(k) }).Filter(func(k call.Kind) bool { return !k.IsPointToPoint() })

// TestRecorder has a rank carry out collectives with and without a lock. The recorder remembers the last ones of both, in their order.
func TestRecorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			r    Recorder
			h    call.History
			want []Record // all, oldest first
		)
		t.Repeat(map[string]func(*rapid.T){
			"with a lock": func(t *rapid.T) {
				seq, c := uint64(len(want)+1), call.Call{Kind: anyCollective.Draw(t, "kind"), Count: rapid.Uint64().Draw(t, "count")}
				f := call.Fingerprint{Seq: seq, Call: c, Before: h.Add(c.Pack()).Before()}
				r.Begin(f)
				r.Moved(seq, 1, 2)
				err := rapid.SampledFrom([]error{nil, errors.New("failed")}).Draw(t, "error")
				r.End(seq, err)
				want = append(want, Record{Fingerprint: f, Sent: 1, Received: 2, Err: err})
			},
			"without": func(t *rapid.T) {
				for range rapid.IntRange(1, Length+10).Draw(t, "collectives") {
					seq, c := uint64(len(want)+1), call.Call{Kind: 5, Root: int32(len(want))}
					w := h.Add(c.Pack())
					r.BeginShort(seq, w)
					r.EndShort(seq, 3, 4, seq%2 == 0)
					want = append(want, Record{Fingerprint: call.Fingerprint{Seq: seq, Call: c, Before: w.Before()}, Sent: 3, Received: 4})
				}
			},
			"": func(t *rapid.T) {
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
				if n := len(want); n > 0 && (r.Last() != want[n-1].Fingerprint || r.Latest() == nil || r.IsUnderWay()) {
					t.Fatalf("the last one is %+v, want %+v", r.Last(), want[n-1].Fingerprint)
				}
			},
		})
	})
}

// A collective that has begun is under way until its end has been noted, and has moved nothing, whatever its entry
// had before.
func TestAShortCollectiveIsUnderWay(t *testing.T) {
	var r Recorder
	if r.IsUnderWay() || r.Latest() != nil || r.Last() != (call.Fingerprint{}) {
		t.Errorf("an empty recorder has %+v", r.Last())
	}
	for seq := range uint64(Length) {
		r.BeginShort(seq+1, call.Packed{What: 5})
		r.EndShort(seq+1, 3, 4, true)
	}
	r.BeginShort(Length+1, call.Packed{What: 7})
	if n := r.Latest(); !r.IsUnderWay() || !n.IsUnderWay() || r.Last().Call.Kind != 7 || n.Sent+n.Received != 0 {
		t.Errorf("got %+v", n)
	}
	before := r.Moves()
	r.EndShort(Length+1, 0, 0, true)
	if n := r.Latest(); r.IsUnderWay() || n.IsUnderWay() || r.Moves() == before {
		t.Errorf("got %+v", n)
	}
}

// TestReadersBesideAWriter: what is read while a short collective begins is one that began, whole.
func TestReadersBesideAWriter(t *testing.T) {
	var r Recorder
	const calls = 1_000_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seq := uint64(1); seq <= calls; seq++ {
			r.BeginShort(seq, call.Packed{What: seq << 32, RootAndBefore: seq << 32, Count: seq})
			r.EndShort(seq, seq, seq, true)
		}
	}()
	last := uint64(0)
	for last < calls {
		f := r.Last()
		if f.Seq < last || f.Seq > 0 && (f.Call.Count != f.Seq || uint64(f.Call.Detail) != f.Seq || uint64(f.Before) != f.Seq) {
			t.Fatalf("got %+v after %d", f, last)
		}
		last = f.Seq
	}
	<-done
}

// A receive from any rank with any tag has these as they are.
func TestTransferFromAny(t *testing.T) {
	var r Recorder
	c := call.Call{Kind: call.KindRecv, Type: 7}
	r.BeginTransfer(r.Next(), c, -1, -1)
	r.Moved(1, 0, 9)
	r.End(1, io.EOF)
	if n := r.Latest(); n.Call != c || n.Before != 0 ||
		n.Peer != -1 || n.Tag != -1 || n.Received != 9 || n.IsUnderWay() || !errors.Is(n.Err, io.EOF) {
		t.Errorf("got %+v", n)
	}
}

// What is over at once is numbered with what is not.
func TestNoteTransfer(t *testing.T) {
	var r Recorder
	r.NoteTransfer(cpu.Now(), call.Pack(call.KindSend, 0, 0, 0), 3, 4, 5, 0)
	seq := r.Next() // of a probe, of which there is no record
	if n := r.At(1); n == nil || n.IsUnderWay() || n.Peer != 3 || n.Tag != 4 || n.Sent != 5 ||
		n.Call != (call.Call{Kind: call.KindSend}) || seq != 2 || r.At(seq) != nil || r.Latest() != nil {
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
		r.Begin(call.Fingerprint{Seq: seq + 1})
		r.Moved(seq+1, 3, 5)
		if seq < Length {
			r.End(seq+1, nil)
		}
	}
	if n, sent, received, over := r.Recent(); n != Length || sent != 3*Length || received != 5*Length || over <= 0 {
		t.Errorf("%d operations in %v, %d bytes sent and %d received", n, over, sent, received)
	}
}

// No record has ended before it began, however short its call was.
func TestNoCallEndsBeforeItBegins(t *testing.T) {
	var r Recorder
	for seq := uint64(1); seq <= 20_000; seq++ {
		r.BeginShort(seq, call.Packed{What: 5})
		r.EndShort(seq, 0, 0, seq%2 == 0)
		if n := r.At(seq); n.Ended.Before(n.Began) {
			t.Fatalf("call %d began at %v and ended at %v", seq, n.Began, n.Ended)
		}
	}
}
