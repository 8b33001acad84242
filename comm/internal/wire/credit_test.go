package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
)

// An honest sender never reaches the receiver's limits, whatever is on its way between them and however long; what waits goes on, in
// its order, when there is room; and when all has been consumed, nothing is counted any longer but what is less than a step.
func TestCredits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			sender   SendCredit
			receiver ReceiveCredit
			toPeer   []Header // on its way
			back     []Header
			kept     []Header // by the receiver
			sent     uint64   // ID of the last message
			waiting  [2][]uint64
		)
		busy := rapid.SampledFrom([]int{0, MaxRTS - RTSReserve - 5, MaxRTS - 5}).Draw(t, "RTS that are never answered")
		sender.Unanswered, receiver.Announced = busy, busy
		announced := func(id uint64, seq uint64) {
			toPeer = append(toPeer, Header{Kind: RTS, ID: id, Fingerprint: call.Fingerprint{Seq: seq}})
		}
		deliver := func(t *rapid.T) {
			if len(toPeer) == 0 {
				t.Skip("nothing is on its way")
			}
			h := toPeer[0]
			toPeer = toPeer[1:]
			err := receiver.RTS
			if h.Kind == Eager {
				err = func() error { return receiver.Eager(int(h.Size)) }
			}
			if err := err(); err != nil {
				t.Fatalf("an honest peer is cut off: it %v", err)
			}
			kept = append(kept, h)
		}
		answer := func(h Header) {
			if h.Kind == RTS {
				back = append(back, Header{Kind: []Kind{CTS, Decline}[h.ID/2%2], ID: h.ID})
			} else if credit := receiver.Consume(int(h.Size)); credit > 0 {
				back = append(back, Header{Kind: Credit, Size: credit})
			}
		}
		takeBack := func(t *rapid.T) {
			if len(back) == 0 {
				t.Skip("nothing is on its way back")
			}
			h := back[0]
			back = back[1:]
			receiver.Sent(&h)
			if h.Kind == Credit {
				if err := sender.Return(h.Size); err != nil {
					t.Fatalf("the receiver %v", err)
				}
				return
			}
			if err := sender.Answered(func(id uint64) bool {
				line := &waiting[id%2]
				if len(*line) == 0 || (*line)[0] != id {
					t.Fatalf("message %d goes before its turn: %v wait", id, *line)
				}
				*line = (*line)[1:]
				if id%3 == 0 { // it is over
					return false
				}
				announced(id, id%2)
				return true
			}); err != nil {
				t.Fatalf("the receiver %v", err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(t, "messages")
				size := rapid.SampledFrom([]uint64{0, 1, 8 << 10, EagerLimit, EagerLimit + 1, LongestChunk, LongestChunk + 1}).Draw(t, "bytes")
				for range n {
					sent++
					seq := sent % 2 // by turns point to point and of a collective
					h := Header{Kind: Eager, ID: sent, Size: size, Fingerprint: call.Fingerprint{Seq: seq}}
					switch {
					case sender.Fits(&h):
						if len(waiting[seq]) > 0 {
							t.Fatalf("message %d overtakes %v", sent, waiting[seq])
						}
						sender.Use(int(size))
						toPeer = append(toPeer, h)
					case sender.Announce(sent, seq):
						announced(sent, seq)
					default:
						waiting[seq] = append(waiting[seq], sent)
					}
				}
			},
			"send at once": func(t *rapid.T) {
				if n := rapid.IntRange(0, 8<<10).Draw(t, "bytes"); sender.FitsShort(n) {
					sender.Use(n)
					toPeer = append(toPeer, Header{Kind: Eager, Size: uint64(n)})
				}
			},
			"deliver": deliver,
			"consume": func(t *rapid.T) {
				if len(kept) == 0 {
					t.Skip("nothing is kept")
				}
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "message")
				answer(kept[i])
				kept = slices.Delete(kept, i, i+1)
			},
			"return": takeBack,
		})
		for len(toPeer)+len(back)+len(kept) > 0 {
			for len(toPeer) > 0 {
				deliver(t)
			}
			for _, h := range kept {
				answer(h)
			}
			kept = nil
			for len(back) > 0 {
				takeBack(t)
			}
		}
		if eager := receiver.EagerBytes; eager >= CreditStep || receiver.Announced != busy || sender.Unanswered != busy || sender.used != eager ||
			sender.HasWaiting(1) || sender.HasWaiting(0) && busy < MaxRTS-RTSReserve {
			t.Fatalf("all has been consumed, but %+v and %+v are left", sender, receiver)
		}
	})
}

// Messages wait when as many as may be have been announced, and of those point to point sooner.
func TestRTSAreBounded(t *testing.T) {
	var s SendCredit
	for seq, most := range map[uint64]int{0: MaxRTS - RTSReserve, 1: MaxRTS} {
		id := uint64(0)
		for s.Announce(id, seq) {
			id++
		}
		if s.Unanswered != most || !s.HasWaiting(seq) {
			t.Errorf("%d may be announced, want %d", s.Unanswered, most)
		}
		s = SendCredit{}
	}
	if err := s.Answered(func(uint64) bool { return true }); err == nil {
		t.Error("the answer to nothing is taken")
	}
	if err := new(SendCredit).Return(1); err == nil {
		t.Error("credit that was not used is taken back")
	}
}

// A short message overtakes none that waits, though there is credit for it.
func TestShortMessagesOvertakeNothing(t *testing.T) {
	s := SendCredit{Unanswered: MaxRTS}
	if s.Announce(1, 0) || s.FitsShort(0) {
		t.Error("it overtakes a message that waits to be announced")
	}
	s.Unanswered = 1
	if err := s.Answered(func(uint64) bool { return true }); err != nil || !s.FitsShort(0) {
		t.Errorf("it waits, though nothing else does: %v", err)
	}
}

// A receiver cuts off who sends more than it may.
func TestReceiveCreditIsBounded(t *testing.T) {
	var r ReceiveCredit
	n := 0
	for ; r.Eager(0) == nil; n++ {
	}
	if n != EagerCredit/MessageCost {
		t.Errorf("%d empty messages are taken", n)
	}
	for n = 0; r.RTS() == nil; n++ {
	}
	if n != MaxRTS {
		t.Errorf("%d RTS are taken", n)
	}
}
