package spool

import (
	"fmt"
	"io"
	"time"
)

// ownShare is how many bytes from Write may wait.
const ownShare = 1 << 20

// A Writer is one destination.
type Writer struct {
	queue *queue
	name  string
	own   *Source // of Write

	// Of a file:
	file   *File // nil: it is none
	opened chan struct{}
	forget func()

	// Under the queue's lock:
	to      io.Writer   // nil: a file that is not open
	broken  func(error) // nil: nobody wants to know
	refuses bool        // takes nothing any more
	closing bool        // a file that is to be closed when all is written
	err     error       // the first
	lost    int64       // bytes that were not written, as far as is known
	dropped int         // calls of Write that found the queue full, and that no line mentions yet
}

func newWriter(q *queue, name string) *Writer {
	w := &Writer{queue: q, name: name}
	w.own = w.Source(nil)
	return w
}

// Name returns the destination's name for people.
func (w *Writer) Name() string { return w.name }

// Source returns a new source of what is written here. If the destination is a file that fails, rescue is called, in the
// goroutine of the queue, with what it did not accept; nil: that is lost.
func (w *Writer) Source(rescue func([]byte)) *Source { return &Source{writer: w, rescue: rescue} }

// Opened is closed when a file has been opened, or could not be.
func (w *Writer) Opened() <-chan struct{} { return w.opened }

// Close closes a file when everything is written. It does not wait.
func (w *Writer) Close() {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	w.closing = true
	w.queue.start()
}

// Broken makes the queue's goroutine call f with the first error, even if that has already happened.
func (w *Writer) Broken(f func(error)) {
	w.queue.mu.Lock()
	w.broken = f
	err := w.err
	w.queue.mu.Unlock()
	if err != nil {
		f(err)
	}
}

// Loss returns how many bytes were not written, as far as is known, and the first reason; nil: nothing was lost.
func (w *Writer) Loss() (bytes int64, err error) {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return w.lost, w.err
}

// Write puts b into the queue. It does not wait and does not fail: if there is no room, b is dropped, and a line says so
// when there is room again.
func (w *Writer) Write(b []byte) (int, error) {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	if w.own.waiting > ownShare {
		w.dropped++
		return len(b), nil
	}
	w.reportDropped()
	w.queue.put(w.own, b)
	return len(b), nil
}

// reportDropped is called with the lock held.
func (w *Writer) reportDropped() {
	if w.dropped > 0 {
		text := fmt.Sprintf("gorun: number of messages that are missing here because nobody read %s: %d\n", w.name, w.dropped)
		w.dropped = 0
		w.queue.put(w.own, []byte(text))
	}
}

// drain is Drain for one destination.
func (w *Writer) drain(still time.Duration, end time.Time, quit <-chan struct{}) {
	w.queue.mu.Lock()
	w.reportDropped()
	w.queue.mu.Unlock()
	w.queue.drain(still, end, quit)
}

// A Source puts data into a queue.
type Source struct {
	writer *Writer
	rescue func([]byte)

	// Under the queue's lock:
	waiting int           // bytes that are not written
	share   int           // that Full was asked for
	room    chan struct{} // closed when less than half of that waits; nil: nobody asked
}

// Put puts a copy of b into the queue, and does not wait. It returns false if the destination accepts nothing any more.
func (s *Source) Put(b []byte) bool {
	q := s.writer.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(s, b)
}

// Full returns nil if at most share bytes of this source are waiting, otherwise a channel that is closed when there is room again.
func (s *Source) Full(share int) <-chan struct{} {
	q := s.writer.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.waiting <= share {
		return nil
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	s.share = share
	return s.room
}

// written is called with the lock held.
func (s *Source) written(n int) {
	s.waiting -= n
	if s.room != nil && s.waiting <= s.share/2 {
		close(s.room)
		s.room = nil
	}
}
