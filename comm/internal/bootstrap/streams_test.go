package bootstrap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/transport"
)

// A testStream is an end of a stream. Its other methods are not called.
type testStream struct {
	transport.Stream
	closed int
}

func (s *testStream) Close() error { s.closed++; return nil }

// TestStreamsOfBothEnds: whatever the processes of some worlds have kept, a stream is used at both its ends or at none, and what is not used is
// closed, once.
func TestStreamsOfBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "ranks")
		kept, infos := make([]*Streams, size), make([]Info, size)
		var all []*testStream
		old := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range 20 {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "their ranks before")
		tls := rapid.Bool().Draw(t, "TLS")
		for r := range size {
			if rapid.IntRange(0, 3).Draw(t, "is new") == 0 {
				continue
			}
			s := &Streams{World: rapid.Uint64Range(1, 2).Draw(t, "world"), Rank: old[r], TLS: rapid.IntRange(0, 9).Draw(t, "other TLS") > 0 == tls}
			for range 20 {
				var stream transport.Stream
				if rapid.Bool().Draw(t, "has a stream") {
					one := &testStream{}
					stream, all = one, append(all, one)
				}
				s.To = append(s.To, stream)
			}
			kept[r] = s
			infos[r].Streams = s.info(tls)
		}
		taken := make([][]transport.Stream, size)
		for r := range size {
			var before []transport.Stream
			if kept[r] != nil {
				before = slices.Clone(kept[r].To)
			}
			taken[r] = kept[r].take(infos, r)
			for other, s := range taken[r] {
				if s != nil && (s != before[old[other]] || kept[r].World != kept[other].World) {
					t.Fatalf("rank %d has another stream to rank %d", r, other)
				}
			}
		}
		used := 0
		for r := range size {
			for other, s := range taken[r] {
				if s == nil {
					continue
				}
				if used++; taken[other][r] == nil {
					t.Fatalf("rank %d has a stream to rank %d, which has none back", r, other)
				}
				_ = s.Close()
			}
			if err := kept[r].Close(); err != nil {
				t.Fatal(err)
			}
			_ = kept[r].Close()
		}
		for _, s := range all {
			if s.closed != 1 {
				t.Fatalf("a stream has been closed %d times", s.closed)
			}
		}
	})
}

// TestStreamsOfStrangers: what a rank says may be nonsense.
func TestStreamsOfStrangers(t *testing.T) {
	mine := func() (*Streams, []Info) {
		s := &Streams{World: 7, Rank: 0, To: []transport.Stream{nil, &testStream{}}}
		return s, []Info{{Streams: s.info(false)}, {}, {}}
	}
	for _, wrong := range []streamsInfo{
		{World: 7, Rank: -1, To: []byte{1}}, {World: 7, Rank: 1 << 40, To: []byte{1}}, {World: 7, Rank: 1}, {World: 7, Rank: 0, To: []byte{1}},
		{World: 8, Rank: 1, To: []byte{1}}, {World: 7, Rank: 1, To: []byte{2}},
	} {
		s, infos := mine()
		infos[1].Streams = &wrong
		if taken := s.take(infos, 0); taken[1] != nil {
			t.Errorf("%+v has a stream", wrong)
		}
	}
	s, infos := mine() // two claim to be the same process
	infos[1].Streams = &streamsInfo{World: 7, Rank: 1, To: []byte{1}}
	infos[2].Streams = infos[1].Streams
	if taken := s.take(infos, 0); taken[1] == nil || taken[2] != nil {
		t.Errorf("%v", taken)
	}
	s, infos = mine() // rank 0 says that this rank has more streams than it has
	infos[0].Streams.To = []byte{0xff, 0xff}
	infos[1].Streams = &streamsInfo{World: 7, Rank: 9, To: []byte{1}}
	if taken := s.take(infos, 0); taken[1] != nil {
		t.Errorf("%v", taken)
	}
	if long := (&Streams{To: make([]transport.Stream, 8*longestBitmap+1)}).info(false); long != nil {
		t.Error("an Info may be too long")
	}
}
