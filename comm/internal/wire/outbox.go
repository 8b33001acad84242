package wire

import (
	"bytes"
	"slices"
)

// mostFrames is how many frames are written at once.
const mostFrames = 8

// A Frame is queued to be written: a header, perhaps a payload, perhaps the operation, an O, that ends with it.
type Frame[O comparable] struct {
	Header
	Payload []byte
	Op      O
	Sent    chan struct{} // closed when the frame has been written, or never will be; may be nil
}

func (f *Frame[O]) len() int { return HeaderSize + len(f.Payload) }

// Settle says that the frame has been written, or never will be.
func (f *Frame[O]) Settle() {
	if f.Sent != nil {
		close(f.Sent)
	}
}

// An Outbox is what is to be written to a peer. It is used in one of two ways: who writes at once calls Next and Wrote; a writer with
// memory of its own calls Next, Lend, and then TakeBack and Wrote.
type Outbox[O comparable] struct {
	frames  []Frame[O] // in order
	memory  []Frame[O] // of which frames is a part
	written int        // bytes of the first frame that have been written
	lent    int        // frames of which the writer has bytes

	heads  [mostFrames][HeaderSize]byte // of the frames being written
	slices [2 * mostFrames][]byte
}

// Len is the number of frames.
func (o *Outbox[O]) Len() int { return len(o.frames) }

// Count is the number of frames of that kind.
func (o *Outbox[O]) Count(k Kind) int {
	n := 0
	for i := range o.frames {
		if o.frames[i].Kind == k {
			n++
		}
	}
	return n
}

// Add adds f to what is to be written. The frames before it have been taken from the front: they move back there if it is
// for the room that they have left.
func (o *Outbox[O]) Add(f Frame[O]) {
	if len(o.frames) == cap(o.frames) {
		if cap(o.memory) < 2*len(o.frames)+1 {
			o.memory = make([]Frame[O], 2*len(o.frames)+1)
		}
		o.memory = o.memory[:cap(o.memory)]
		n := copy(o.memory, o.frames)
		clear(o.memory[n:])
		o.frames = o.memory[:n]
	}
	o.frames = append(o.frames, f)
}

// Head is memory for a header that is written past the outbox, while that is empty.
func (o *Outbox[O]) Head() []byte { return o.heads[0][:0] }

// Next is what is to be written next, at most limit bytes, and of how many frames it is. It is good until the next call. Of a frame
// that has not begun it has the whole header or nothing: a stream that has to take back the last byte it was given leaves it begun.
func (o *Outbox[O]) Next(limit int) (v [][]byte, frames int) {
	v = o.slices[:0]
	skip := o.written
	for i := range o.frames[:min(len(o.frames), mostFrames)] {
		if i > 0 && limit < HeaderSize {
			break
		}
		f := &o.frames[i]
		for _, b := range [...][]byte{f.Append(o.heads[i][:0]), f.Payload} {
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

// Wrote counts n bytes that have been written, and returns the frames that they complete. The caller clears them: they must not keep
// anybody's memory.
func (o *Outbox[O]) Wrote(n int) (whole []Frame[O]) {
	o.written += n
	done := 0
	for done < len(o.frames) && o.written >= o.frames[done].len() {
		o.written -= o.frames[done].len()
		done++
	}
	whole, o.frames = o.frames[:done], o.frames[done:]
	return whole
}

// Lend says that the writer has bytes of the first n frames, which it returns.
func (o *Outbox[O]) Lend(n int) []Frame[O] {
	o.lent = n
	return o.frames[:n]
}

// TakeBack says that the writer has no bytes any more, and returns the frames of which it had.
func (o *Outbox[O]) TakeBack() []Frame[O] {
	lent := o.frames[:o.lent]
	o.lent = 0
	return lent
}

// Drop takes out the frames, except those of which the writer has bytes, and returns them.
func (o *Outbox[O]) Drop() []Frame[O] {
	dropped := slices.Clone(o.frames[o.lent:])
	if o.frames = o.frames[:o.lent]; o.lent == 0 {
		o.frames, o.written = nil, 0 // nothing need be whole any more
	}
	return dropped
}

// IsWriting says whether some of op's bytes have gone, or are about to.
func (o *Outbox[O]) IsWriting(op O) bool { return o.isWriting(o.index(op)) }

func (o *Outbox[O]) isWriting(i int) bool { return i >= 0 && (i < o.lent || i == 0 && o.written > 0) }

func (o *Outbox[O]) index(op O) int {
	return slices.IndexFunc(o.frames, func(f Frame[O]) bool { return f.Op == op })
}

// Release takes op's buffer out of use. A frame that has partly gone must follow as a whole: its bytes are copied.
func (o *Outbox[O]) Release(op O) {
	i := o.index(op)
	if i < 0 {
		return
	}
	if !o.isWriting(i) {
		o.frames = slices.Delete(o.frames, i, i+1)
		return
	}
	var none O
	f := &o.frames[i]
	f.Op = none
	if i == 0 && o.written > HeaderSize {
		f.Payload = f.Payload[o.written-HeaderSize:]
		o.written = HeaderSize
	}
	f.Payload = bytes.Clone(f.Payload)
}
