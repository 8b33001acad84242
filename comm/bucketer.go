package comm

import (
	"context"
	"slices"
	"unsafe"
)

// A Bucketer all-reduces buffers in buckets, one message for each, while the program computes the next buffers: the
// gradients of a model's layers, for instance, as the backward pass computes them. Only one goroutine may use it.
type Bucketer[T Element] struct {
	g      *Group
	op     Op
	limits []int
	size   bucketSize
	bucket [][]T
	works  []*Work
}

// NewBucketer makes a Bucketer that combines buffers over the ranks of g. A bucket is full when its buffers have at
// least so many bytes. The following buckets may have other limits, in then; the last limit holds for all buckets after
// it. A small first bucket starts early, and large buckets cost less.
func NewBucketer[T Element](g *Group, op Op, bytes int, then ...int) *Bucketer[T] {
	b := &Bucketer[T]{g: g, op: op, limits: append([]int{bytes}, then...)}
	b.size = bucketSize{limits: b.limits}
	return b
}

// Add puts buf into the bucket. If that makes the bucket full, it starts the all-reduce of the bucket. buf belongs to
// comm until [Bucketer.Flush] has returned, and then holds the result. Every rank must add buffers of the same lengths
// in the same order.
func (b *Bucketer[T]) Add(buf []T) {
	if b == nil {
		return
	}
	var e T
	b.bucket = append(b.bucket, buf)
	if b.size.add(len(buf) * int(unsafe.Sizeof(e))) {
		b.start()
	}
}

func (b *Bucketer[T]) start() {
	b.works = append(b.works, IAllReduceCoalesced(b.g, b.bucket, b.op))
	b.bucket = nil
}

// Flush starts the all-reduce of the last bucket and waits for all buckets. Every rank must call it after the same
// buffers. It returns the first error. You may use the Bucketer again after that.
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
	b.size = bucketSize{limits: b.limits}
	return first
}

// A bucketSize decides which buffers share a bucket.
type bucketSize struct {
	limits []int // of this bucket, the next one, and so on; the last one is that of all that follow
	bytes  int   // in this bucket
}

// add adds so many bytes to the bucket. It reports whether the bucket is full; then the next one begins.
func (s *bucketSize) add(bytes int) (full bool) {
	s.bytes += bytes
	if len(s.limits) > 0 && s.bytes < s.limits[0] {
		return false
	}
	s.bytes = 0
	if len(s.limits) > 1 {
		s.limits = s.limits[1:]
	}
	return true
}
