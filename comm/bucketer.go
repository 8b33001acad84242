package comm

import (
	"context"
	"slices"
	"unsafe"
)

// A Bucketer all-reduces buffers in buckets, each with one message, while the program computes the next ones: the gradients
// of a model's layers, for instance, as the backward pass gets to them. Only one goroutine may use it.
type Bucketer[T Element] struct {
	g       *Group
	op      Op
	limits  []int
	filling filling
	bucket  [][]T
	works   []*Work
}

// NewBucketer makes a Bucketer that combines buffers over the ranks of g. A bucket is full when the buffers in it have at
// least the given number of bytes; those after the first may have limits of their own in then, of which the last holds for
// the rest. A small first bucket starts early, large ones cost less.
func NewBucketer[T Element](g *Group, op Op, bytes int, then ...int) *Bucketer[T] {
	b := &Bucketer[T]{g: g, op: op, limits: append([]int{bytes}, then...)}
	b.filling = filling{limits: b.limits}
	return b
}

// Add puts buf into the bucket and starts the all-reduce of the bucket if that makes it full. buf belongs to comm until
// [Bucketer.Flush] has returned, and then has the result in it. Every rank adds buffers of the same lengths in the same
// order.
func (b *Bucketer[T]) Add(buf []T) {
	if b == nil {
		return
	}
	var e T
	b.bucket = append(b.bucket, buf)
	if b.filling.add(len(buf) * int(unsafe.Sizeof(e))) {
		b.start()
	}
}

// start starts the all-reduce of what is in the bucket.
func (b *Bucketer[T]) start() {
	b.works = append(b.works, IAllReduceCoalesced(b.g, b.bucket, b.op))
	b.bucket = nil
}

// Flush starts what is in the last bucket and waits for all buckets; the Bucketer may then be used again. Every rank calls
// it, after the same buffers. It returns the first error.
func (b *Bucketer[T]) Flush(ctx context.Context) error {
	if b == nil {
		return badArgument("Flush", "the Bucketer is nil: NewBucketer makes one")
	}
	if len(b.bucket) > 0 {
		b.start()
	}
	var first error
	for _, w := range b.works {
		if err := w.Wait(ctx); first == nil {
			first = err
		}
	}
	b.works = slices.Delete(b.works, 0, len(b.works))
	b.filling = filling{limits: b.limits}
	return first
}

// filling decides which buffers share a bucket.
type filling struct {
	limits []int // of this bucket, the next, and so on; the last of all that follow
	bytes  int   // in this bucket
}

// add puts so many bytes into the bucket and reports whether it is full, and the next one begins.
func (f *filling) add(bytes int) (full bool) {
	f.bytes += bytes
	if len(f.limits) > 0 && f.bytes < f.limits[0] {
		return false
	}
	f.bytes = 0
	if len(f.limits) > 1 {
		f.limits = f.limits[1:]
	}
	return true
}
