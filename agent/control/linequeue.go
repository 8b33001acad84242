package control

import "sync"

// How many bytes of lines a client keeps whose user does not read them.
const (
	lastLimit   = 256 << 20 // of the last lines of workers: more than 2,000 have
	followLimit = 4 << 20   // if lines go on coming
)

// A lineQueue has the lines that have come and have not been shown yet. A client always reads, however slowly the lines are shown: a
// connection whose other end takes nothing for long is ended. If too much has come, the queue forgets the oldest lines, and the next one of
// the same worker says so.
type lineQueue struct {
	limit int // bytes

	mu     sync.Mutex
	came   sync.Cond // for pop, with mu
	lines  []Line
	bytes  int
	missed map[int]bool // local ranks of which lines have been forgotten
	closed bool
}

func newLineQueue(limit int) *lineQueue {
	q := &lineQueue{limit: limit, missed: make(map[int]bool)}
	q.came.L = &q.mu
	return q
}

func (q *lineQueue) push(l Line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines = append(q.lines, l)
	for q.bytes += sizeOf(l); q.bytes > q.limit; q.lines = q.lines[1:] {
		q.bytes -= sizeOf(q.lines[0])
		q.missed[q.lines[0].LocalRank] = true
	}
	q.came.Signal()
}

// close says that no more lines will come.
func (q *lineQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.came.Signal()
}

// pop waits for the next line. It returns false if none will come.
func (q *lineQueue) pop() (Line, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 {
		if q.closed {
			return Line{}, false
		}
		q.came.Wait()
	}
	l := q.lines[0]
	q.lines = q.lines[1:]
	q.bytes -= sizeOf(l)
	if q.missed[l.LocalRank] {
		delete(q.missed, l.LocalRank)
		l.Missed = true
	}
	return l, true
}

// sizeOf is about how much memory a line takes.
func sizeOf(l Line) int { return len(l.Text) + 64 }
