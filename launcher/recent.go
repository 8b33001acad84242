package launcher

import (
	"sync"
	"sync/atomic"
)

// Recent keeps the last bytes that each worker of a node has written, by local rank, over all rounds, for people who look at a
// running job. Several goroutines may use it.
type Recent struct {
	buffers []recentBuffer
	bytes   [Both]atomic.Uint64 // by stream

	awaited atomic.Bool // somebody waits for changed
	mu      sync.Mutex
	changed chan struct{} // closed by the next Add; nil: nobody waits
}

// NewRecent returns one for n workers. It needs no memory before workers write.
func NewRecent(n int) *Recent { return &Recent{buffers: make([]recentBuffer, n)} }

// Len is the number of workers.
func (w *Recent) Len() int { return len(w.buffers) }

// Add adds a copy of what the worker with a local rank has written to a stream.
func (w *Recent) Add(local int, stream Std, text []byte) {
	if local >= len(w.buffers) {
		return
	}
	w.buffers[local].add(stream, text)
	w.bytes[stream].Add(uint64(len(text)))
	if w.awaited.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.changed != nil {
			close(w.changed)
			w.changed = nil
			w.awaited.Store(false)
		}
	}
}

// Bytes is how many bytes all workers have written to a stream.
func (w *Recent) Bytes(stream Std) uint64 { return w.bytes[stream].Load() }

// Since returns the pieces that the worker with a local rank has written after another call had returned next; 0: all that are kept.
// missed reports whether older ones are not kept any more.
func (w *Recent) Since(local int, next uint64) (pieces []Piece, now uint64, missed bool) {
	return w.buffers[local].since(next)
}

// Changed returns a channel that is closed when a worker has written something, after this call.
func (w *Recent) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	w.awaited.Store(true)
	return w.changed
}
