package comm

import (
	"net"
	"sync"
)

const (
	// storeOutboxFull is how many bytes may wait for a connection before the other end counts as too slow.
	storeOutboxFull = 256 << 20
	// storeOutboxHigh is from where on no more questions are read from that end.
	storeOutboxHigh = 1 << 20
	// storeFrameCost is what a frame counts beside its bytes, so that small ones are bounded as well.
	storeFrameCost = 64
)

// A storeOutbox is the bounded queue between those who make frames and the one goroutine that writes them to a
// connection, so that making one never waits for the network.
type storeOutbox struct {
	mu      sync.Mutex
	changed sync.Cond
	pieces  net.Buffers
	size    int // what is queued or being written
	closed  bool
}

func newStoreOutbox() *storeOutbox {
	o := &storeOutbox{}
	o.changed.L = &o.mu
	return o
}

// put queues a frame and reports whether there was room.
func (o *storeOutbox) put(frame [][]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.size > storeOutboxFull {
		return false
	}
	o.pieces = append(o.pieces, frame...)
	o.size += sizeOf(frame) + storeFrameCost*len(frame)
	o.changed.Broadcast()
	return true
}

// drain writes what is put, until the outbox is closed and empty or writing fails.
func (o *storeOutbox) drain(conn net.Conn) error {
	for {
		o.mu.Lock()
		for len(o.pieces) == 0 && !o.closed {
			o.changed.Wait()
		}
		batch, size := o.pieces, o.size
		o.pieces = nil
		o.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if _, err := batch.WriteTo(conn); err != nil {
			return err
		}
		o.mu.Lock()
		o.size -= size
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// settle waits until little is queued, or the outbox is closed.
func (o *storeOutbox) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > storeOutboxHigh && !o.closed {
		o.changed.Wait()
	}
}

// close ends put; what is queued is still written.
func (o *storeOutbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}
