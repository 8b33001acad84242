package wire

import (
	"bytes"
	"slices"
	"testing"
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
			clear(o.Wrote(len(b)))
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
	clear(o.Wrote(HeaderSize))
	o.Next(HeaderSize + 200)
	giveUp(&o)
	whole := o.Wrote(len(next) - HeaderSize)
	if len(whole) != 2 || whole[0].Op != ops[0] || whole[1].Op != nil || o.Len() != 0 {
		t.Errorf("%d frames are whole, and %d are left", len(whole), o.Len())
	}
	if o.Add(Frame[*int]{Op: ops[2]}); o.IsWriting(ops[2]) {
		t.Error("a frame is being written that nobody has begun")
	}
}
