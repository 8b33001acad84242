package control

import (
	"container/list"
	"sync"
	"time"
)

// How many bytes of lines a client keeps that its user has not read yet.
const (
	lastLimit   = 256 << 20 // of the last lines of workers: more than 2,000 have
	followLimit = 4 << 20   // if lines go on coming
)

// pausedAfter is how long a user takes none of the lines that are there before the queue forgets lines. It is less than the time after which
// a connection breaks if nobody reads from it.
const pausedAfter = 10 * time.Second

// A lineQueue has the lines that have come and have not been shown yet. If it is full, the client does not read from its connection until the
// user has read some lines. If the user reads nothing for a while, the client reads again, because the connection would break otherwise. The
// queue then forgets the oldest lines of the worker that has the most bytes in it. The next line of that worker says that lines are missing.
type lineQueue struct {
	limit      int           // bytes
	came, room chan struct{} // have an entry if a line has come, or has been taken

	mu      sync.Mutex
	lines   *list.List       // of Line, oldest first
	workers map[int]*backlog // by local rank
	bytes   int
	idle    time.Time // since when no line has been taken, although there are some
	closed  bool      // no more lines will come
	stopped bool      // no more lines will be taken
}

// A backlog is what a lineQueue has of one worker.
type backlog struct {
	lines  []*list.Element // oldest first
	bytes  int
	missed bool // lines before these have been forgotten
}

func newLineQueue(limit int) *lineQueue {
	return &lineQueue{
		limit: limit, came: make(chan struct{}, 1), room: make(chan struct{}, 1),
		lines: list.New(), workers: make(map[int]*backlog),
	}
}

// push adds a line. If there are too many, it waits until some have been taken, or forgets some.
func (q *lineQueue) push(l Line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines.Len() == 0 {
		q.idle = time.Now()
	}
	b := q.workers[l.LocalRank]
	if b == nil {
		b = &backlog{}
		q.workers[l.LocalRank] = b
	}
	b.lines = append(b.lines, q.lines.PushBack(l))
	b.bytes += sizeOf(l)
	q.bytes += sizeOf(l)
	signal(q.came)
	for q.bytes > q.limit && !q.stopped {
		if paused := time.Since(q.idle); paused >= pausedAfter {
			if !q.forget() {
				return
			}
		} else {
			q.awaitRoom(pausedAfter - paused)
		}
	}
}

// awaitRoom waits until a line is taken, at most for limit. The mutex is held, but not during the wait.
func (q *lineQueue) awaitRoom(limit time.Duration) {
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-q.room:
	case <-time.After(limit):
	}
}

// forget removes the oldest line of the worker that has the most bytes, but never the last line of a worker. It returns false if each worker
// has only its last one.
func (q *lineQueue) forget() bool {
	var most *backlog
	for _, b := range q.workers {
		if len(b.lines) > 1 && (most == nil || b.bytes > most.bytes) {
			most = b
		}
	}
	if most == nil {
		return false
	}
	q.remove(most)
	most.missed = true
	return true
}

// remove removes the oldest line of a worker.
func (q *lineQueue) remove(b *backlog) Line {
	l := q.lines.Remove(b.lines[0]).(Line)
	b.lines[0] = nil // or its text would stay in memory
	b.lines = b.lines[1:]
	b.bytes -= sizeOf(l)
	q.bytes -= sizeOf(l)
	return l
}

// pop waits for the oldest line. It returns false if none will come.
func (q *lineQueue) pop() (Line, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.lines.Len() == 0 {
		if q.closed {
			return Line{}, false
		}
		q.mu.Unlock()
		<-q.came
		q.mu.Lock()
	}
	b := q.workers[q.lines.Front().Value.(Line).LocalRank]
	l := q.remove(b)
	l.Missed, b.missed = l.Missed || b.missed, false
	q.idle = time.Now()
	signal(q.room)
	return l, true
}

// close says that no more lines will come.
func (q *lineQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.came)
}

// stop says that no more lines will be taken: push does not wait for that any more.
func (q *lineQueue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	signal(q.room)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sizeOf is about how much memory a line takes.
func sizeOf(l Line) int { return len(l.Text) + 128 }
