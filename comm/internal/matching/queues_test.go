package matching

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/wire"
)

// A want is a receive or a probe of TestQueues.
type want struct {
	Pattern
	isProbe bool
}

// TestQueues compares the queues with MPI's rule: a message goes to the receive posted first that wants it, and a
// receive gets the message that came first; a probe sees that and leaves it.
func TestQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			q        Queues[*want]
			posted   []*want
			arrived  []*Message
			latest   [2]uint64 // the last collective of which a source has sent something
			matches  = func(w *want, m *Message) bool { return matchesByTheBook(w.Pattern, m) }
			indexOf  = func(w *want) int { return slices.IndexFunc(arrived, func(m *Message) bool { return matches(w, m) }) }
			receiver = func(m *Message) int {
				return slices.IndexFunc(posted, func(w *want) bool { return !w.isProbe && matches(w, m) })
			}
		)
		pattern := func(t *rapid.T, wildcards bool) Pattern {
			least := 0
			if wildcards {
				least = -1
			}
			// There are so few that often several fit.
			p := Pattern{Source: rapid.IntRange(0, 1).Draw(t, "source"), Seq: uint64(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "seq"))}
			if p.Seq == 0 {
				p.Source = rapid.IntRange(least, 1).Draw(t, "source or any")
				p.Tag = int32(rapid.IntRange(least, 1).Draw(t, "tag"))
			}
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"message": func(t *rapid.T) {
				p := pattern(t, false)
				if p.Seq > 0 {
					p.Seq = max(p.Seq, latest[p.Source])
					latest[p.Source] = p.Seq
				}
				kind := rapid.SampledFrom([]wire.Kind{wire.Eager, wire.RTS}).Draw(t, "kind")
				m := &Message{Header: wire.Header{Kind: kind, Tag: p.Tag, Fingerprint: call.Fingerprint{Seq: p.Seq}}, Source: p.Source}
				w, place := q.Receive(&m.Header, m.Source)
				i := receiver(m)
				if (place >= 0) != (i >= 0) || i >= 0 && w != posted[i] {
					t.Fatalf("it went to %+v, want number %d of %d", w, i, len(posted))
				}
				if place >= 0 {
					q.TakeReceive(place)
					posted = slices.Delete(posted, i, i+1)
					return
				}
				saw := q.Keep(m)
				arrived = append(arrived, m)
				var should []*want
				posted = slices.DeleteFunc(posted, func(w *want) bool {
					sees := w.isProbe && matches(w, m)
					if sees {
						should = append(should, w)
					}
					return sees
				})
				if !slices.Equal(saw, should) {
					t.Fatalf("%d probes saw it, want %d", len(saw), len(should))
				}
			},
			"receive": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "number") {
					w := &want{pattern(t, true), rapid.Bool().Draw(t, "probe")}
					m, place := q.Message(w.Pattern, false)
					i := indexOf(w)
					if (m != nil) != (i >= 0) || i >= 0 && m != arrived[i] {
						t.Fatalf("it gets %+v, want number %d of %d", m, i, len(arrived))
					}
					switch {
					case m == nil:
						q.Post(w.Pattern, w.isProbe, w)
						posted = append(posted, w)
					case !w.isProbe:
						q.TakeMessage(place)
						arrived = slices.Delete(arrived, i, i+1)
					}
				}
			},
			"whole": func(t *rapid.T) {
				w := &want{Pattern: pattern(t, true)}
				m, _ := q.Message(w.Pattern, true)
				i := slices.IndexFunc(arrived, func(m *Message) bool { return m.Kind == wire.Eager && matches(w, m) })
				if (m != nil) != (i >= 0) || m != nil && m != arrived[i] {
					t.Fatalf("it finds %+v, want number %d", m, i)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(posted) == 0 {
					t.Skip("there is none")
				}
				i := rapid.IntRange(0, len(posted)-1).Draw(t, "receive")
				if !q.Cancel(posted[i]) || q.Cancel(posted[i]) {
					t.Fatal("it could not be cancelled, or twice")
				}
				posted = slices.Delete(posted, i, i+1)
			},
			"": func(t *rapid.T) {
				if q.IsEmpty() != (len(posted)+len(arrived) == 0) || !slices.Equal(inOrder(q.Unexpected()), inOrder(arrived)) ||
					!slices.Equal(q.receives(), posted) {
					t.Fatalf("the queues have %d messages, want %d", len(q.Unexpected()), len(arrived))
				}
				last := uint64(rapid.IntRange(0, 5).Draw(t, "last"))
				var chunks []*Message
				err := q.EachOfCollectives(last, func(m *Message) error {
					chunks = append(chunks, m)
					return nil
				})
				others := func(m *Message) bool { return m.Seq == 0 || m.Seq > last }
				if want := slices.DeleteFunc(inOrder(arrived), others); err != nil || !slices.Equal(inOrder(chunks), want) {
					t.Fatalf("%d messages of collectives up to %d, want %d: %v", len(chunks), last, len(want), err)
				}
			},
		})
		if !slices.Equal(inOrder(q.Clear()), inOrder(arrived)) || len(q.Unexpected()) > 0 {
			t.Fatal("messages are left")
		}
	})
}

// inOrder sorts messages: first those point to point, then those of collectives, by source. Of each, the oldest comes
// first.
func inOrder(messages []*Message) []*Message {
	source := func(m *Message) int {
		if m.Seq == 0 {
			return -1
		}
		return m.Source
	}
	all := slices.Clone(messages)
	slices.SortStableFunc(all, func(a, b *Message) int { return source(a) - source(b) })
	return all
}

// EachOfCollectives ends with the first error, though there are messages of another source.
func TestEachOfCollectivesEnds(t *testing.T) {
	var q Queues[*want]
	for source := range 2 {
		for seq := range uint64(5) {
			q.Keep(&Message{Header: wire.Header{Kind: wire.Eager, Fingerprint: call.Fingerprint{Seq: seq}}, Source: source})
		}
	}
	calls := 0
	err := q.EachOfCollectives(4, func(m *Message) error {
		if calls++; m.Seq == 2 {
			return errors.New("the second")
		}
		return nil
	})
	if err == nil || calls != 2 {
		t.Errorf("%d calls: %v", calls, err)
	}
}

// receives returns the posted receives, oldest first.
func (q *Queues[R]) receives() (all []R) {
	for _, p := range q.posted.All() {
		all = append(all, p.receive)
	}
	return all
}

// matchesByTheBook reports whether m is one that p wants.
func matchesByTheBook(p Pattern, m *Message) bool {
	if p.Seq != m.Seq || p.Source != AnySource && p.Source != m.Source {
		return false
	}
	return p.Tag == m.Tag || p.Seq == 0 && p.Tag == AnyTag
}

// A message's memory is used again for one that is as long.
func TestMessagesUseMemoryAgain(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 1000, 1024, 1025, wire.EagerLimit, wire.LongestChunk} {
		h := wire.Header{Kind: wire.Eager, Size: uint64(n)}
		m := NewMessage(h, 3)
		if len(m.Payload) != n || m.Source != 3 || m.Header != h {
			t.Fatalf("got %d bytes of %+v", len(m.Payload), m.Header)
		}
		room := cap(m.Payload)
		m.Free()
		if again := NewMessage(h, 1); len(again.Payload) != n || cap(again.Payload) != room {
			t.Errorf("%d bytes: %d, and room for %d", n, len(again.Payload), cap(again.Payload))
		}
	}
	var kept []*Message
	allocs := testing.AllocsPerRun(1, func() { // as many messages as a sender that is ahead may send
		kept = make([]*Message, 0, 1000)
		for range cap(kept) {
			kept = append(kept, NewMessage(wire.Header{Kind: wire.Eager, Size: 64}, 0))
		}
	})
	if most := float64(len(kept) / 10); allocs > most {
		t.Errorf("%v allocations for %d messages", allocs, len(kept))
	}
	if m := NewMessage(wire.Header{Kind: wire.RTS, Size: 1 << 40}, 0); len(m.Payload) != 0 {
		t.Errorf("an RTS has %d bytes", len(m.Payload))
	}
	long := NewMessage(wire.Header{Kind: wire.Eager, Size: wire.LongestChunk + 1}, 0)
	long.Free() // which is kept nowhere
}
