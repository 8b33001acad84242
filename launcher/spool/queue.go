package spool

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	largePiece = 16 << 10              // bytes of one write, at most
	smallPiece = 4 << 10               // the same after a slow write, so that Drain sees a reader go on
	slow       = 50 * time.Millisecond // a write that takes longer is slow
	keepBuffer = 256 << 10             // a buffer larger than this is not used again
)

// ErrUnread is the reason why Drain gives up a destination.
var ErrUnread = errors.New("nobody reads it")

// A queue holds the data that waits to be written, by source. All its methods are called with mu held, except run and drain.
type queue struct {
	mu         sync.Mutex
	file       *Writer // the only destination, if it is a file
	pending    []byte  // what the goroutine has yet to take
	parts      []part  // of pending
	taken      []byte  // what it is writing
	of         []part  // of taken
	spare      []byte  // an empty buffer, for the next turn
	spareParts []part
	line       []byte        // of a file: the beginning of a line that has been written without its end
	writes     int           // that have come to an end
	running    bool          // there is a goroutine, which has something to do
	abandoned  bool          // its goroutine has been given up, in a write that does not end
	idle       chan struct{} // closed when it has nothing to do; nil: nobody asked
}

// A part is bytes that one source has put.
type part struct {
	source *Source
	bytes  int
}

func (q *queue) put(s *Source, b []byte) bool {
	if s.writer.refuses || q.abandoned {
		s.writer.lost += int64(len(b))
		return false
	}
	if len(b) == 0 {
		return true
	}
	q.pending = append(q.pending, b...)
	if last := len(q.parts) - 1; last >= 0 && q.parts[last].source == s {
		q.parts[last].bytes += len(b)
	} else {
		q.parts = append(q.parts, part{s, len(b)})
	}
	s.waiting += len(b)
	q.start()
	return true
}

func (q *queue) start() {
	if !q.running {
		q.running = true
		go q.run()
	}
}

// run is the body of the goroutine. When it has been abandoned, it must not touch the queue any more.
func (q *queue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.openFile(); q.abandoned {
		return
	}
	for size := largePiece; len(q.pending) > 0; {
		text, parts := q.pending, q.parts
		q.pending, q.parts = q.spare, q.spareParts
		q.spare, q.spareParts = nil, nil
		for q.taken, q.of = text, parts; len(q.taken) > 0; {
			if size = q.writePiece(size); q.abandoned {
				return
			}
		}
		if cap(text) <= keepBuffer {
			q.spare, q.spareParts = text[:0], parts[:0]
		}
	}
	if q.closeFile(); q.abandoned {
		return
	}
	q.running = false
	q.rest()
}

func (q *queue) rest() {
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// unlocked calls do without the lock, because do may block or put something.
func (q *queue) unlocked(do func()) {
	q.mu.Unlock()
	defer q.mu.Lock()
	do()
}

// writePiece writes at most size of the taken bytes. It returns the size of the next piece.
func (q *queue) writePiece(size int) int {
	w := q.of[0].source.writer
	piece := cutPiece(q.taken[:q.bytesFor(w)], size)
	if w.refuses {
		w.lost += int64(len(piece))
		q.drop(len(piece))
		return size
	}
	var n int
	var err error
	begun := time.Now()
	q.unlocked(func() { n, err = write(w.to, piece) })
	q.writes++
	switch {
	case q.abandoned:
	case err == nil:
		q.noteLine(piece)
		q.drop(n)
	case w.file != nil:
		q.noteLine(piece[:n])
		q.drop(n)
		q.endFile(err)
	default: // the next one may fare better: a disk that was full may have been cleared
		q.drop(len(piece))
		w.lost += int64(len(piece) - n)
		q.fail(w, err)
	}
	if time.Since(begun) > slow {
		return smallPiece
	}
	return largePiece
}

// bytesFor returns how many bytes at the beginning of the taken bytes are for w.
func (q *queue) bytesFor(w *Writer) (n int) {
	for _, p := range q.of {
		if p.source.writer != w {
			break
		}
		n += p.bytes
	}
	return n
}

// cutPiece returns the beginning of b, cut at the end of a line if possible.
func cutPiece(b []byte, size int) []byte {
	if len(b) <= size {
		return b
	}
	if end := bytes.LastIndexByte(b[:size], '\n'); end >= 0 {
		return b[:end+1]
	}
	return b[:size]
}

// drop removes the first n of the taken bytes.
func (q *queue) drop(n int) {
	q.taken = q.taken[n:]
	for n > 0 {
		p := &q.of[0]
		gone := min(n, p.bytes)
		p.bytes -= gone
		p.source.written(gone)
		if n -= gone; p.bytes == 0 {
			q.of = q.of[1:]
		}
	}
}

// fail records an error of a destination that is not a file. If its reader has gone away, nothing more is written there.
func (q *queue) fail(w *Writer, err error) {
	w.refuses = w.refuses || errors.Is(err, syscall.EPIPE)
	if w.err != nil {
		return
	}
	w.err = err
	if tell := w.broken; tell != nil {
		q.unlocked(func() { tell(err) })
	}
}

// takeAll empties the queue.
func (q *queue) takeAll() (text []byte, parts []part) {
	text, parts = slices.Concat(q.taken, q.pending), slices.Concat(q.of, q.parts)
	for _, p := range parts {
		p.source.written(p.bytes)
	}
	q.taken, q.of, q.pending, q.parts = nil, nil, nil, nil
	return text, parts
}

// drain waits until there is nothing to do, or gives up.
func (q *queue) drain(still time.Duration, end time.Time, quit <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running && !q.abandoned {
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		idle, writes := q.idle, q.writes
		isOver := false
		q.unlocked(func() {
			select {
			case <-idle:
			case <-time.After(min(still, time.Until(end))):
				isOver = !time.Now().Before(end)
			case <-quit:
				isOver = true
			}
		})
		select {
		case <-idle:
			return
		default:
		}
		if isOver || q.writes == writes {
			q.abandon()
		}
	}
}

// abandon gives up the goroutine and what is not written.
func (q *queue) abandon() {
	if q.abandoned {
		return
	}
	q.abandoned = true
	q.rest()
	if w := q.file; w != nil {
		if w.err == nil {
			q.endFile(ErrUnread)
		}
		return
	}
	_, parts := q.takeAll()
	for _, p := range parts {
		w := p.source.writer
		w.lost += int64(p.bytes)
		if w.err == nil {
			w.err = ErrUnread
		}
	}
}
