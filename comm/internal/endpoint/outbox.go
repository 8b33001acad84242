package endpoint

import (
	"bytes"
	"slices"
)

const (
	// mostFrames is how many frames are written at once.
	mostFrames = 8
	// pieceLimit is how many bytes are written or read at once, so that both get their turns.
	pieceLimit = 1 << 20
)

// An outbox is what is to be written to a peer. Guarded by the endpoint's mutex.
type outbox struct {
	out     []frame // in order
	room    []frame // of which out is a part
	written int     // bytes of the first frame that have been written
	flying  int     // frames of which bytes are with the writer of a net.Conn
	broken  bool    // a write has failed, because of fault; the reader will find out more
	fault   error
	unasked unasked

	heads  [mostFrames][headerSize]byte // of the frames being written
	slices [2 * mostFrames][]byte
}

// A frame is queued to be written: a header, perhaps a payload, perhaps the operation that ends with it.
type frame struct {
	header
	payload []byte
	op      *Op
	sent    chan struct{} // closed when the frame has been written, or never will be; may be nil
}

func (f *frame) len() int { return headerSize + len(f.payload) }

func (f *frame) settle() {
	if f.sent != nil {
		close(f.sent)
	}
}

// enqueue queues f for p, and writes it at once if that is possible. The mutex is held.
func (e *Endpoint) enqueue(p *peer, f frame) {
	if p.state == stateGone || p.dismissed {
		f.settle()
		return
	}
	e.gather(p, &f.header)
	p.add(f)
	if len(p.out) == 1 {
		e.write(p)
	}
}

// add adds f to what is to be written. The frames before it have been taken from the front: they move back there if it is
// for the room that they have left.
func (o *outbox) add(f frame) {
	if len(o.out) == cap(o.out) {
		if cap(o.room) < 2*len(o.out)+1 {
			o.room = make([]frame, 2*len(o.out)+1)
		}
		o.room = o.room[:cap(o.room)]
		n := copy(o.room, o.out)
		clear(o.room[n:])
		o.out = o.room[:n]
	}
	o.out = append(o.out, f)
}

// giveBack returns n bytes of p's eager budget, in large pieces. The mutex is held.
func (e *Endpoint) giveBack(p *peer, n int) {
	if p.owed += n; p.owed >= creditStep {
		e.enqueue(p, frame{header: header{kind: kindCredit, size: uint64(p.owed)}})
		p.owed = 0
	}
}

// next is what is to be written next, at most limit bytes, and of how many frames it is. It is good until the next call. Of a frame
// that has not begun it has the whole header or nothing: a stream that has to take back the last byte it was given leaves it begun.
func (o *outbox) next(limit int) (v [][]byte, frames int) {
	v = o.slices[:0]
	skip := o.written
	for i := range o.out[:min(len(o.out), mostFrames)] {
		if i > 0 && limit < headerSize {
			break
		}
		f := &o.out[i]
		for _, b := range [...][]byte{f.append(o.heads[i][:0]), f.payload} {
			n := min(skip, len(b))
			skip -= n
			if b = b[n:min(n+limit, len(b))]; len(b) > 0 {
				v = append(v, b)
				limit -= len(b)
			}
		}
		if frames++; limit == 0 {
			break
		}
	}
	return v, frames
}

// wrote counts n bytes that have been written, and ends the frames that they complete.
func (o *outbox) wrote(n int) {
	o.written += n
	done := 0
	for done < len(o.out) && o.written >= o.out[done].len() {
		f := &o.out[done]
		o.written -= f.len()
		done++
		o.unasked.settle(f)
		f.settle()
		if f.op != nil {
			f.op.finish(nil)
		}
	}
	clear(o.out[:done]) // which must not keep anybody's memory
	o.out = o.out[done:]
}

// isWriting says whether some of op's bytes have gone, or are about to.
func (o *outbox) isWriting(op *Op) bool {
	i := slices.IndexFunc(o.out, func(f frame) bool { return f.op == op })
	return i >= 0 && (i < o.flying || i == 0 && o.written > 0)
}

// let takes op's buffer out of use. A frame that has partly gone must follow as a whole: its bytes are copied.
func (o *outbox) let(op *Op) {
	i := slices.IndexFunc(o.out, func(f frame) bool { return f.op == op })
	switch {
	case i < 0:
	case i == 0 && o.written > headerSize:
		o.out[0].op, o.out[0].payload = nil, bytes.Clone(o.out[0].payload[o.written-headerSize:])
		o.written = headerSize
	case i < o.flying || i == 0 && o.written > 0:
		o.out[i].op, o.out[i].payload = nil, bytes.Clone(o.out[i].payload)
	default:
		o.out = slices.Delete(o.out, i, i+1)
	}
}
