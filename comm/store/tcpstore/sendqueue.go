package tcpstore

import (
	"net"
	"sync"
)

const (
	// queueFull is how many bytes may be queued for a connection before its other end counts as too slow.
	queueFull = 256 << 20
	// queueHigh is how many bytes may be queued before no more requests are read from that end.
	queueHigh = 1 << 20
	// bufferCost is what a buffer of a frame counts in addition to its bytes, so that many small ones are bounded as well.
	bufferCost = 64
)

// A sendQueue is the bounded queue of the frames that one goroutine writes to a connection. Queueing a frame never waits
// for the network.
type sendQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	buffers net.Buffers
	size    int // of what is queued or being written
	closed  bool
}

func newSendQueue() *sendQueue {
	q := &sendQueue{}
	q.changed.L = &q.mu
	return q
}

// push queues a frame and reports whether there was room.
func (q *sendQueue) push(frame [][]byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.size > queueFull {
		return false
	}
	q.buffers = append(q.buffers, frame...)
	q.size += sizeOf(frame) + bufferCost*len(frame)
	q.changed.Broadcast()
	return true
}

// writeTo writes what is queued to conn until the queue is closed and empty, or writing fails.
func (q *sendQueue) writeTo(conn net.Conn) error {
	for {
		q.mu.Lock()
		for len(q.buffers) == 0 && !q.closed {
			q.changed.Wait()
		}
		batch, size := q.buffers, q.size
		q.buffers = nil
		q.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if _, err := batch.WriteTo(conn); err != nil {
			return err
		}
		q.mu.Lock()
		q.size -= size
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

// waitLow waits until less than queueHigh is queued, or the queue is closed.
func (q *sendQueue) waitLow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size > queueHigh && !q.closed {
		q.changed.Wait()
	}
}

// close refuses further frames. What is queued is still written.
func (q *sendQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
