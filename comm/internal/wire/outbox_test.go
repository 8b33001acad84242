package wire

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed)
	}
	return b
}

// Who gives up a send gets the buffer back at once, and the peer its bytes all the same.
func TestASendGivenUpInTheMiddleOfItsFrame(t *testing.T) {
	const piece = 100
	for gone := range 2*HeaderSize + 700 { // bytes written before it is given up
		var o Outbox[*int]
		var want []byte
		var bufs [][]byte
		for i, n := range []int{300, 0, 200, 150} {
			buf := pattern(n, i)
			f := Frame[*int]{Header: Header{Kind: Eager, ID: uint64(i), Size: uint64(n)}, Payload: buf, Op: new(int)}
			o.Add(f)
			want = append(f.Append(want), buf...)
			bufs = append(bufs, buf)
		}
		var got []byte
		write := func(limit int) {
			v := o.Next(min(limit, piece))
			b := slices.Concat(v...)
			got = append(got, b...)
			o.Wrote(len(b), func(*Frame[*int]) {})
		}
		for len(got) < gone {
			write(gone - len(got))
		}
		// The first frame that has not gone, which has partly gone unless its bytes begin here.
		id := o.frames.All()[0].ID
		if partly := o.written > 0; partly != o.IsWriting(o.frames.All()[0].Op) {
			t.Fatalf("after %d bytes: being written %v", gone, !partly)
		} else if !partly {
			continue
		}
		o.Release(o.frames.All()[0].Op)
		clear(bufs[id])
		for o.Len() > 0 {
			write(piece)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("given up after %d bytes: other bytes were written", gone)
		}
	}
}

// A piece does not end within the header of a frame that it begins.
func TestAPieceEndsOutsideOfHeaders(t *testing.T) {
	const first = 500
	for limit := 1; limit < 4*HeaderSize+first; limit++ {
		var o Outbox[*int]
		for _, n := range []int{first, 0, 10, 0} {
			o.Add(Frame[*int]{Header: Header{Kind: Eager, Size: uint64(n)}, Payload: pattern(n, n)})
		}
		v := o.Next(limit)
		length := len(slices.Concat(v...))
		for i := range o.Len() {
			if length == 0 {
				break
			}
			if i > 0 && length < HeaderSize {
				t.Fatalf("with room for %d bytes: %d of the header of frame %d", limit, length, i)
			}
			length -= min(length, o.frames.All()[i].len())
		}
		if length > 0 || len(v) == 0 {
			t.Fatalf("with room for %d bytes: %d slices, and %d bytes too many", limit, len(v), length)
		}
	}
}

// A frame of which a writer has bytes is written, though its operation has been given up meanwhile.
func TestAFrameGivenUpWhileItIsWritten(t *testing.T) {
	ops := []*int{new(int), new(int), new(int)}
	t.Run("each", func(t *testing.T) {
		giveUpTwo(t, ops, func(o *Outbox[*int]) {
			o.Release(ops[1])
			o.Release(ops[2])
		})
	})
	t.Run("all at once", func(t *testing.T) {
		giveUpTwo(t, ops, func(o *Outbox[*int]) { o.ReleaseFunc(func(op *int) bool { return op == ops[1] || op == ops[2] }) })
	})
}

// giveUpTwo lets giveUp give up the last two operations while the first two are being written.
func giveUpTwo(t *testing.T, ops []*int, giveUp func(o *Outbox[*int])) {
	var o Outbox[*int]
	for _, op := range ops {
		o.Add(Frame[*int]{Header: Header{Kind: Eager, Size: 100}, Payload: pattern(100, 1), Op: op})
	}
	next := slices.Concat(o.Next(2 * (HeaderSize + 100))...)
	for i, op := range ops {
		if o.IsWriting(op) != (i < 2) {
			t.Errorf("frame %d is being written: %v", i, i >= 2)
		}
	}
	o.Wrote(HeaderSize, func(*Frame[*int]) {})
	o.Next(HeaderSize + 200)
	giveUp(&o)
	var whole []*int
	o.Wrote(len(next)-HeaderSize, func(f *Frame[*int]) { whole = append(whole, f.Op) })
	if !slices.Equal(whole, []*int{ops[0], nil}) || o.Len() != 0 {
		t.Errorf("%v are whole, and %d are left", whole, o.Len())
	}
	if o.Add(Frame[*int]{Op: ops[2]}); o.IsWriting(ops[2]) {
		t.Error("a frame is being written that nobody has begun")
	}
}

// A queued frame is one of TestLongMessagesTakeTurns, and what it was added behind.
type queued struct {
	payload []byte
	at      int // bytes that had been written
	turns   int // frames of Data that it may have to wait for: one for each message
}

// TestLongMessagesTakeTurns: frames behind long messages wait for one frame of each at most, all messages arrive, and a frame that ends something
// follows all that was before it.
func TestLongMessagesTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			o      Outbox[int]
			frames []queued // by ID
			order  []uint64 // of all but Data
			stream []byte
			whole  int
		)
		add := func(k Kind, n int) {
			id := len(frames)
			f := queued{payload: pattern(n, id), at: len(stream)}
			for _, before := range o.frames.All() {
				if k == Leave || before.ends() {
					f.turns = math.MaxInt
					break
				}
				if before.Kind == Data {
					f.turns++
				}
			}
			if k != Data {
				order = append(order, uint64(id))
			}
			frames = append(frames, f)
			o.Add(Frame[int]{Header: Header{Kind: k, ID: uint64(id), Size: uint64(n)}, Payload: f.payload})
		}
		write := func(n int) {
			b := slices.Concat(o.Next(n)...)
			stream = append(stream, b...)
			o.Wrote(len(b), func(*Frame[int]) { whole++ })
		}
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			switch kind := rapid.SampledFrom([]Kind{Data, Data, Data, Eager, CTS, Leave}).Draw(t, "kind"); kind {
			case Data:
				add(kind, rapid.IntRange(0, 3*LongestChunk).Draw(t, "bytes"))
			case Eager:
				add(kind, 5000)
			default:
				add(kind, 0)
			}
			for range rapid.IntRange(0, 3).Draw(t, "writes") {
				write(rapid.IntRange(1, LongestChunk+HeaderSize).Draw(t, "room"))
			}
		}
		for o.Len() > 0 {
			write(LongestChunk + HeaderSize)
		}
		if whole != len(frames) {
			t.Fatalf("%d of %d frames are whole", whole, len(frames))
		}
		got := make([][]byte, len(frames))
		var gotOrder []uint64
		var data []int // where each frame of Data begins
		for at := 0; at < len(stream); {
			h, err := Parse(stream[at:][:HeaderSize])
			if err != nil {
				t.Fatal(err)
			}
			if h.Kind == Data {
				data = append(data, at)
			} else {
				f := frames[h.ID]
				first, _ := slices.BinarySearch(data, f.at)
				if waited := len(data) - first; waited > f.turns {
					t.Fatalf("frame %d has waited for %d of Data, want at most %d", h.ID, waited, f.turns)
				}
				gotOrder = append(gotOrder, h.ID)
			}
			got[h.ID] = append(got[h.ID], stream[at+HeaderSize:][:h.Size]...)
			at += HeaderSize + int(h.Size)
			for i := range frames[:h.ID] {
				if h.Kind == Leave && !bytes.Equal(got[i], frames[i].payload) {
					t.Fatalf("frame %d ends something, and frame %d is not whole", h.ID, i)
				}
			}
		}
		if !slices.Equal(gotOrder, order) {
			t.Fatalf("order %v, want %v", gotOrder, order)
		}
		for i, f := range frames {
			if !bytes.Equal(got[i], f.payload) {
				t.Fatalf("frame %d has other bytes", i)
			}
		}
	})
}
