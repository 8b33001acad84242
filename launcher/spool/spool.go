package spool

import (
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A Spool holds the destinations of a process.
type Spool struct {
	mu       sync.Mutex
	consoles []*Writer
	files    []*Writer // that are not closed
}

// New returns a Spool without destinations.
func New() *Spool { return &Spool{} }

// To returns the Writer of a destination that stays open as long as the process runs. name is its name for people. The
// same destination and name give the same Writer. Destinations that are the same open file, or are both terminals, share
// a queue, which keeps the order of what is written to them.
func (s *Spool) To(destination io.Writer, name string) *Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &queue{}
	for _, known := range s.consoles {
		if !together(known.to, destination) {
			continue
		}
		if q = known.queue; known.name == name {
			return known
		}
	}
	w := newWriter(q, name)
	w.to = destination
	s.consoles = append(s.consoles, w)
	return w
}

// together reports whether the same goroutine must write to two destinations.
func together(a, b io.Writer) bool {
	if reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b {
		return true
	}
	one, ok := a.(*os.File)
	other, ok2 := b.(*os.File)
	if !ok || !ok2 {
		return false
	}
	oneInfo, err := one.Stat()
	otherInfo, err2 := other.Stat()
	if err != nil || err2 != nil {
		return false
	}
	const device = os.ModeDevice | os.ModeCharDevice // a terminal has several names
	return os.SameFile(oneInfo, otherInfo) || oneInfo.Mode()&otherInfo.Mode()&device == device
}

// A File is a destination that is opened, and closed when all is written. Its functions are called in the goroutine of
// its queue.
type File struct {
	Open     func() (io.WriteCloser, error)
	Failed   func(error) // it takes nothing any more: its opening or a write has failed, or Drain has given it up
	Unclosed func(error) // it could not be closed
}

// Open returns the Writer of a file, and begins to open it.
func (s *Spool) Open(f File) *Writer {
	w := newWriter(&queue{}, "")
	w.file, w.opened, w.forget = &f, make(chan struct{}), func() { s.forget(w) }
	w.queue.file = w
	s.mu.Lock()
	s.files = append(s.files, w)
	s.mu.Unlock()
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	w.queue.start()
	return w
}

func (s *Spool) forget(w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = slices.DeleteFunc(s.files, func(f *Writer) bool { return f == w })
}

// Timeouts is how long Drain waits for a destination.
type Timeouts struct {
	Still time.Duration // in which nothing is taken
	Total time.Duration
}

// Drain waits until everything is written, first to the files, since what they do not accept may go elsewhere. It gives
// up destinations that take longer than the timeouts, and all of them when quit is closed; after that, these accept
// nothing.
func (s *Spool) Drain(limits Timeouts, quit <-chan struct{}) {
	end := time.Now().Add(limits.Total)
	for _, list := range []*[]*Writer{&s.files, &s.consoles} {
		s.mu.Lock()
		writers := slices.Clone(*list)
		s.mu.Unlock()
		var all sync.WaitGroup
		for _, w := range writers {
			all.Go(func() { w.drain(limits.Still, end, quit) })
		}
		all.Wait()
	}
}
