package recent

import (
	"sync"
	"sync/atomic"
)

// Workers keeps the last bytes of each worker of a node, by local rank, over all rounds. Several goroutines may use it.
type Workers struct {
	buffers []Buffer
	bytes   [4]atomic.Uint64 // by stream

	awaited atomic.Bool // somebody waits for changed
	mu      sync.Mutex
	changed chan struct{} // closed by the next Add; nil: nobody waits
}

// New returns empty buffers for n workers. They need no memory before workers write.
func New(n int) *Workers { return &Workers{buffers: make([]Buffer, n)} }

// Len is the number of workers.
func (w *Workers) Len() int { return len(w.buffers) }

// Add adds a copy of what the worker with a local rank has written to a stream.
func (w *Workers) Add(local int, stream byte, text []byte) {
	if local >= len(w.buffers) {
		return
	}
	w.buffers[local].Add(stream, text)
	w.bytes[stream%4].Add(uint64(len(text)))
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

// Bytes is how many bytes all workers have written to a stream, which is less than 4.
func (w *Workers) Bytes(stream byte) uint64 { return w.bytes[stream%4].Load() }

// Since returns what the worker with a local rank has written since next, as Buffer.Since does.
func (w *Workers) Since(local int, next uint64) (pieces []Piece, now uint64, missed bool) {
	return w.buffers[local].Since(next)
}

// Changed returns a channel that is closed when a worker has written something, after this call.
func (w *Workers) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	w.awaited.Store(true)
	return w.changed
}
