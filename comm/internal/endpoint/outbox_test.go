package endpoint

import (
	"bytes"
	"slices"
	"testing"
)

// Who gives up a send gets the buffer back at once, and the peer its bytes all the same.
func TestASendGivenUpInTheMiddleOfItsFrame(t *testing.T) {
	const piece = 100
	for gone := range 2*headerSize + 700 { // bytes written before it is given up
		var o outbox
		var want []byte
		var bufs [][]byte
		for i, n := range []int{300, 0, 200, 150} {
			buf := pattern(n, i)
			f := frame{header: header{kind: kindEager, id: uint64(i), size: uint64(n)}, payload: buf, op: &Op{}}
			o.out = append(o.out, f)
			want = append(f.append(want), buf...)
			bufs = append(bufs, buf)
		}
		given := slices.Clone(o.out)
		for i := range o.out {
			o.out[i].op = nil // so that nothing ends
		}
		var got []byte
		write := func(limit int) {
			v, _ := o.next(min(limit, piece))
			b := slices.Concat(v...)
			got = append(got, b...)
			o.wrote(len(b))
		}
		for len(got) < gone {
			write(gone - len(got))
		}
		// The first frame that has not gone, which has partly gone unless its bytes begin here.
		id := o.out[0].id
		o.out[0].op = given[id].op
		if partly := o.written > 0; partly != o.isWriting(o.out[0].op) {
			t.Fatalf("after %d bytes: being written %v", gone, !partly)
		} else if !partly {
			continue
		}
		o.let(o.out[0].op)
		clear(bufs[id])
		for len(o.out) > 0 {
			write(piece)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("given up after %d bytes: other bytes were written", gone)
		}
	}
}

// Bytes that a receive has claimed are kept when it is withdrawn: another one gets the message.
func TestAReceiveWithdrawnInTheMiddleOfItsMessage(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		e, l := w.ends[1], w.lanes[1]
		sent := pattern(500, 1)
		h := header{kind: kindEager, group: 1, size: 500}
		first, buf := make([]byte, 500), make([]byte, 500)
		r := w.recv(1, 0, 0, first)
		e.mu.Lock()
		p := e.peers[0]
		frame := append(h.append(nil), sent...)
		err := e.feed(p, frame[:headerSize+200])
		if p.in.op != r || err != nil {
			t.Errorf("the receive has not claimed the message: %v", err)
		}
		l.end(r, ErrClosed)
		clear(first)
		if err := e.feed(p, frame[headerSize+200:]); err != nil {
			t.Error(err)
		}
		e.mu.Unlock()
		must(t, w.recv(1, 0, 0, buf))
		if !bytes.Equal(buf, sent) || !bytes.Equal(first, make([]byte, 500)) {
			t.Error("the message has changed, or the buffer of the receive that was given up")
		}
	})
}

// A piece does not end within the header of a frame that it begins.
func TestAPieceEndsOutsideOfHeaders(t *testing.T) {
	const first = 500
	for limit := 1; limit < 4*headerSize+first; limit++ {
		var o outbox
		for _, n := range []int{first, 0, 10, 0} {
			o.out = append(o.out, frame{header: header{kind: kindEager, size: uint64(n)}, payload: pattern(n, n)})
		}
		v, frames := o.next(limit)
		length := len(slices.Concat(v...))
		for i := range frames {
			if i > 0 && length < headerSize {
				t.Fatalf("with room for %d bytes: %d of the header of frame %d", limit, length, i)
			}
			length -= min(length, o.out[i].len())
		}
		if length > 0 || len(v) == 0 {
			t.Fatalf("with room for %d bytes: %d slices, and %d bytes too many", limit, len(v), length)
		}
	}
}
