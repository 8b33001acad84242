package wire

import (
	"bytes"
	"slices"

	"github.com/gorun/gorun/comm/internal/queue"
)

// mostFrames is how many frames are written at once.
const mostFrames = 8

// A Frame waits to be written. Op is the operation that ends with it, if there is one.
type Frame[O comparable] struct {
	Header
	Payload []byte
	Op      O
	Sent    chan struct{} // closed when the frame has been written, or never will be; may be nil
}

func (f *Frame[O]) len() int { return HeaderSize + len(f.Payload) }

// CloseSent says that the frame has been written, or never will be.
func (f *Frame[O]) CloseSent() {
	if f.Sent != nil {
		close(f.Sent)
	}
}

// An Outbox is the queue of frames to a peer. To write, call Next and then Wrote. Operations may be given up in between.
type Outbox[O comparable] struct {
	frames  queue.Queue[Frame[O]]
	written int // bytes of the first frame that have been written
	writing int // frames of which Next has returned bytes that Wrote has not counted

	heads  [mostFrames][HeaderSize]byte // of the frames being written
	slices [2 * mostFrames][]byte
}

// Len is the number of frames.
func (o *Outbox[O]) Len() int { return o.frames.Len() }

// Count is the number of frames of that kind.
func (o *Outbox[O]) Count(k Kind) int {
	n := 0
	for _, f := range o.frames.All() {
		if f.Kind == k {
			n++
		}
	}
	return n
}

// HasOps reports whether an operation ends with one of the frames.
func (o *Outbox[O]) HasOps() bool {
	var none O
	return slices.ContainsFunc(o.frames.All(), func(f Frame[O]) bool { return f.Op != none })
}

// Add adds f to what is to be written.
func (o *Outbox[O]) Add(f Frame[O]) { o.frames.Push(f) }

// Head is memory for a header that does not go through the outbox, which is empty.
func (o *Outbox[O]) Head() []byte { return o.heads[0][:0] }

// Next returns the bytes to write next, at most limit, good until the next call. It has the whole header of a new frame, or none of it:
// otherwise a stream that holds a byte back could leave the frame begun.
func (o *Outbox[O]) Next(limit int) [][]byte {
	v, skip, frames := o.slices[:0], o.written, o.frames.All()
	o.writing = 0
	for i := range frames[:min(len(frames), mostFrames)] {
		if limit == 0 || i > 0 && limit < HeaderSize {
			break
		}
		f := &frames[i]
		for _, b := range [...][]byte{f.Append(o.heads[i][:0]), f.Payload} {
			n := min(skip, len(b))
			skip -= n
			if b = b[n:min(n+limit, len(b))]; len(b) > 0 {
				v = append(v, b)
				limit -= len(b)
			}
		}
		o.writing++
	}
	return v
}

// Wrote counts n bytes that have been written, and returns the frames that they complete. They are good until the outbox changes, and
// the caller clears them: they must not keep anybody's memory.
func (o *Outbox[O]) Wrote(n int) (whole []Frame[O]) {
	done, rest := o.completed(n)
	o.written, o.writing = rest, 0
	return o.frames.Take(done)
}

// Completes returns the frames that the next n bytes complete. They are good until the outbox changes.
func (o *Outbox[O]) Completes(n int) []Frame[O] {
	done, _ := o.completed(n)
	return o.frames.All()[:done]
}

// completed returns how many frames the next n bytes complete, and how many bytes of the frame after these they are.
func (o *Outbox[O]) completed(n int) (frames, rest int) {
	all := o.frames.All()
	for rest = o.written + n; frames < len(all) && rest >= all[frames].len(); frames++ {
		rest -= all[frames].len()
	}
	return frames, rest
}

// Drop takes out all frames, and returns them. Nothing need be whole any more.
func (o *Outbox[O]) Drop() []Frame[O] {
	dropped := o.frames.All()
	o.frames, o.written, o.writing = queue.Queue[Frame[O]]{}, 0, 0
	return dropped
}

func (o *Outbox[O]) index(op O) int {
	return slices.IndexFunc(o.frames.All(), func(f Frame[O]) bool { return f.Op == op })
}

// IsWriting reports whether some of op's bytes have gone, or are about to.
func (o *Outbox[O]) IsWriting(op O) bool { return o.isWriting(o.index(op)) }

func (o *Outbox[O]) isWriting(i int) bool { return i >= 0 && i < o.writing || i == 0 && o.written > 0 }

// ReleaseFunc is Release for all operations for which is returns true; that of no operation is not one.
func (o *Outbox[O]) ReleaseFunc(is func(op O) bool) {
	for i := range o.frames.All() {
		if f := &o.frames.All()[i]; !o.isWriting(i) {
			break
		} else if is(f.Op) {
			f.detach()
		}
	}
	o.frames.RemoveFunc(func(f Frame[O]) bool { return is(f.Op) })
}

// detach makes the frame one of no operation.
func (f *Frame[O]) detach() {
	var none O
	f.Op, f.Payload = none, bytes.Clone(f.Payload)
}

// Release takes op's buffer out of use. A frame that has partly gone must follow as a whole: its bytes are copied.
func (o *Outbox[O]) Release(op O) {
	i := o.index(op)
	switch {
	case i < 0:
	case !o.isWriting(i):
		o.frames.Remove(i)
	default:
		o.frames.All()[i].detach()
	}
}
