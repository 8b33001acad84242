package wire

import (
	"bytes"
	"slices"

	"github.com/gorun/gorun/comm/internal/queue"
)

// mostFrames is how many frames are written at once.
const mostFrames = 8

// A Frame waits to be written. Op is the operation that ends with it, if there is one. A payload of Data longer than LongestChunk is written as
// several frames: see [Outbox.Wrote].
type Frame[O comparable] struct {
	Header
	Payload []byte // what has not been written as a whole frame
	Op      O
	Sent    chan struct{} // closed when the frame has been written, or never will be; may be nil
}

// next returns what is written as one frame.
func (f *Frame[O]) next() (Header, []byte) {
	h, b := f.Header, f.Payload
	if h.Kind == Data {
		b = b[:min(len(b), LongestChunk)]
		h.Size = uint64(len(b))
	}
	return h, b
}

// isLast reports whether next returns all that is left.
func (f *Frame[O]) isLast() bool { return f.len() == HeaderSize+len(f.Payload) }

// ends reports whether the frame says that nothing more follows, in a group or at all. So it stays behind all that was before it.
func (f *Frame[O]) ends() bool { return f.Kind == Leave || f.Kind == Goodbye }

func (f *Frame[O]) len() int {
	_, b := f.next()
	return HeaderSize + len(b)
}

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

	left   []Frame[O]                   // scratch of Wrote
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

// IsData reports whether bytes of Data are written next.
func (o *Outbox[O]) IsData() bool { return o.frames.Len() > 0 && o.frames.All()[0].Kind == Data }

// Add adds f to what is to be written.
func (o *Outbox[O]) Add(f Frame[O]) { o.frames.Push(f) }

// Head is memory for a header that does not go through the outbox, which is empty.
func (o *Outbox[O]) Head() []byte { return o.heads[0][:0] }

// Next returns the bytes to write next, at most limit, good until the next call. It has the whole header of a new frame, or none of it:
// otherwise a stream that holds a byte back could leave the frame begun.
func (o *Outbox[O]) Next(limit int) [][]byte {
	v, skip, frames := o.slices[:0], o.written, o.frames.All()
	o.writing = 0
	whole := true // nothing is left of the frames before
	for i := range frames[:min(len(frames), mostFrames)] {
		f := &frames[i]
		if limit == 0 || i > 0 && limit < HeaderSize || f.ends() && !whole {
			break
		}
		whole = whole && f.isLast()
		h, payload := f.next()
		for _, b := range [...][]byte{h.Append(o.heads[i][:0]), payload} {
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

// Wrote counts n bytes that have been written, and calls whole for each frame of which nothing is left. The rest of a long message moves to the
// end of the queue, or in front of the first frame that ends something. So messages wait for parts of each other, not for the whole.
func (o *Outbox[O]) Wrote(n int, whole func(f *Frame[O])) {
	done, rest := o.completed(n)
	o.written, o.writing = rest, 0
	taken := o.frames.Take(done)
	for i := range taken {
		if f := &taken[i]; f.isLast() {
			whole(f)
		} else {
			_, b := f.next()
			f.Payload = f.Payload[len(b):]
			o.left = append(o.left, *f)
		}
	}
	clear(taken) // they must not keep anybody's memory
	for _, f := range o.left {
		at := slices.IndexFunc(o.frames.All(), func(f Frame[O]) bool { return f.ends() })
		if at < 0 {
			at = o.frames.Len()
		}
		o.frames.Insert(at, f)
	}
	clear(o.left)
	o.left = o.left[:0]
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

// ReleaseFunc is Release for all operations for which is returns true. It returns false for the zero O, which frames without an operation
// have.
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

// detach makes the frame one of no operation. What is left of a long message behind it is not sent.
func (f *Frame[O]) detach() {
	var none O
	_, b := f.next()
	f.Op, f.Payload = none, bytes.Clone(b)
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
