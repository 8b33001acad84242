package control

import "sync"

// maxQueue is how many bytes of lines a client keeps that its user has not read yet. The last lines of 2,000 workers
// are fewer.
const maxQueue = 256 << 20

// A lineQueue has the lines that have come and have not been shown yet, so that the client goes on reading while its
// user does not: the connection would break otherwise. A queue that is full forgets the oldest lines. The next line
// of the same worker says that.
type lineQueue struct {
	limit int           // bytes
	came  chan struct{} // has an entry if a line has come, or none will come any more

	mu     sync.Mutex
	lines  []Line // oldest first
	bytes  int
	missed map[int]bool // by local rank: lines before the next one have been forgotten
	closed bool         // no more lines will come
}

func newLineQueue(limit int) *lineQueue {
	return &lineQueue{limit: limit, came: make(chan struct{}, 1), missed: make(map[int]bool)}
}

// push adds a line, and does not wait.
func (q *lineQueue) push(l Line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines = append(q.lines, l)
	q.bytes += sizeOf(l)
	for q.bytes > q.limit && len(q.lines) > 1 {
		q.missed[q.remove().LocalRank] = true
	}
	q.signal()
}

// remove removes the oldest line.
func (q *lineQueue) remove() Line {
	l := q.lines[0]
	q.lines[0] = Line{} // or its text would stay in memory
	q.lines = q.lines[1:]
	q.bytes -= sizeOf(l)
	l.Missed = l.Missed || q.missed[l.LocalRank]
	q.missed[l.LocalRank] = false
	return l
}

// pop waits for the oldest line. It returns false if none will come.
func (q *lineQueue) pop() (Line, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 {
		if q.closed {
			return Line{}, false
		}
		q.mu.Unlock()
		<-q.came
		q.mu.Lock()
	}
	return q.remove(), true
}

// close says that no more lines will come.
func (q *lineQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *lineQueue) signal() {
	select {
	case q.came <- struct{}{}:
	default:
	}
}

// sizeOf is about how much memory a line takes.
func sizeOf(l Line) int { return len(l.Text) + 128 }
