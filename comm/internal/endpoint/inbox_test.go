package endpoint

import (
	"bytes"
	"testing"

	"github.com/gorun/gorun/comm/internal/wire"
)

// Bytes that a receive has claimed are kept when it is withdrawn: another one gets the message.
func TestAReceiveWithdrawnInTheMiddleOfItsMessage(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		e, comm := w.ends[1], w.comms[1]
		sent := pattern(500, 1)
		h := wire.Header{Kind: wire.Eager, Context: 1, Size: 500}
		first, buf := make([]byte, 500), make([]byte, 500)
		r := w.recv(1, 0, 0, first)
		in := e.lock()
		p := e.peers[0]
		frame := append(h.Append(nil), sent...)
		err := in.feed(p, frame[:wire.HeaderSize+200])
		if p.in.op != (*operation)(r) || err != nil {
			t.Errorf("the receive has not claimed the message: %v", err)
		}
		(*communicator)(comm).end(p.in.op, ErrClosed)
		clear(first)
		if err := in.feed(p, frame[wire.HeaderSize+200:]); err != nil {
			t.Error(err)
		}
		in.unlock()
		must(t, w.recv(1, 0, 0, buf))
		if !bytes.Equal(buf, sent) || !bytes.Equal(first, make([]byte, 500)) {
			t.Error("the message has changed, or the buffer of the receive that was given up")
		}
	})
}
