package launcher

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestRecentBuffer: a buffer has the last pieces that were added, in order, whole, and as many as fit.
func TestRecentBuffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b recentBuffer
		var all []Piece
		var next uint64
		taken := 0
		for range rapid.IntRange(0, 60).Draw(t, "pieces") {
			size := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, 2*RecentSize)).Draw(t, "size")
			p := Piece{Stream: Std(rapid.IntRange(1, 2).Draw(t, "stream")), Text: bytes.Repeat([]byte{byte(len(all))}, size)}
			b.add(p.Stream, p.Text)
			p.Text = p.Text[:min(size, RecentSize-headerSize)]
			all = append(all, p)
			if rapid.IntRange(0, 3).Draw(t, "read") > 0 {
				continue
			}
			pieces, now, missed := b.since(next)
			if !missed && len(pieces) != len(all)-taken {
				t.Fatalf("%d pieces since the last look, want %d", len(pieces), len(all)-taken)
			}
			comparePieces(t, pieces, all)
			next, taken = now, len(all)
		}
		pieces, _, _ := b.since(0)
		comparePieces(t, pieces, all)
		used := 0
		for _, p := range pieces {
			used += headerSize + len(p.Text)
		}
		if len(pieces) < len(all) && used+headerSize+len(all[len(all)-len(pieces)-1].Text) <= RecentSize {
			t.Fatalf("%d of %d pieces are kept, and one more had room", len(pieces), len(all))
		}
		if used > RecentSize || len(b.ring) > RecentSize {
			t.Fatalf("%d bytes are kept in %d", used, len(b.ring))
		}
	})
}

// comparePieces wants pieces to be the last ones of all.
func comparePieces(t *rapid.T, pieces, all []Piece) {
	for i, p := range pieces {
		want := all[len(all)-len(pieces)+i]
		if p.Stream != want.Stream || !bytes.Equal(p.Text, want.Text) {
			t.Fatalf("piece %d of %d has %d bytes of stream %d, want %d of %d", i, len(pieces), len(p.Text), p.Stream, len(want.Text), want.Stream)
		}
	}
}

// TestRecentChanged: who waits learns of the next piece, of whichever worker.
func TestRecentChanged(t *testing.T) {
	w := NewRecent(2)
	_, next, _ := w.Since(1, 0)
	changed := w.Changed()
	select {
	case <-changed:
		t.Fatal("changed before anything was added")
	default:
	}
	w.Add(2, 1, []byte("of nobody"))
	w.Add(1, 1, []byte("text"))
	<-changed
	pieces, _, missed := w.Since(1, next)
	if w.Bytes(1) != 4 || w.Bytes(2) != 0 {
		t.Errorf("%d and %d bytes, want 4 and 0", w.Bytes(1), w.Bytes(2))
	}
	if len(pieces) != 1 || string(pieces[0].Text) != "text" || missed {
		t.Errorf("pieces %q, missed %t", pieces, missed)
	}
}
