// Package flow bounds the streams between gorun launch and its proxies: a sender has a Credit, and a receiver has a Sink that returns it.
package flow

import (
	"io"
	"sync"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/launcher/spool"
)

// A Credit is how many bytes of a stream may be sent. Its zero value is none.
type Credit struct {
	mu    sync.Mutex
	bytes int
	more  chan struct{} // closed when there are more; nil: nobody waits
	open  bool          // there is no limit any more
}

// NewCredit returns the credit with which a stream begins.
func NewCredit() *Credit { return &Credit{bytes: frame.Window} }

// Add returns n bytes to the sender.
func (c *Credit) Add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += n
	c.wake()
}

// Open removes the limit, because nobody counts any more.
func (c *Credit) Open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
	c.wake()
}

// wake is called with the lock held.
func (c *Credit) wake() {
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// take waits until something may be sent, and takes all of it, but at most most bytes.
func (c *Credit) take(most int) int {
	for {
		c.mu.Lock()
		if c.open {
			c.mu.Unlock()
			return most
		}
		if n := min(most, c.bytes); n > 0 {
			c.bytes -= n
			c.mu.Unlock()
			return n
		}
		if c.more == nil {
			c.more = make(chan struct{})
		}
		more := c.more
		c.mu.Unlock()
		<-more
	}
}

// IsUsedUp reports whether nothing may be sent.
func (c *Credit) IsUsedUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.open && c.bytes <= 0
}

// Pump reads from r what the credit allows, and passes it to send, which keeps it. It returns when r ends.
func Pump(r io.Reader, credit *Credit, send func([]byte)) {
	for {
		n := credit.take(frame.MaxData)
		b := make([]byte, n)
		got, err := r.Read(b)
		credit.Add(n - got)
		if got > 0 {
			send(b[:got])
		}
		if err != nil {
			return
		}
	}
}

// A Sink passes a stream on, and counts what its sender may send again. One goroutine uses it.
type Sink struct {
	source *spool.Source
	bytes  int // that came, and were not returned to the sender
	awaits bool
}

// NewSink returns a sink for what goes to source.
func NewSink(source *spool.Source) *Sink { return &Sink{source: source} }

// atOnce is how many bytes are returned at one time: it takes few frames, and no sender waits for it.
const atOnce = frame.Window / 4

// Exceeds reports whether n more bytes are more than the sender may send: it does not count what it was told.
func (s *Sink) Exceeds(n int) bool { return s.bytes+n > frame.Window }

// Put passes on b, of which received bytes have just come. The difference is of use if the caller holds back the beginning of a line.
// It returns what Room returns.
func (s *Sink) Put(b []byte, received int) (taken int, room <-chan struct{}) {
	s.source.Put(b) // a destination that has failed accepts nothing, and the sender need not wait for it
	s.bytes += received
	return s.Room()
}

// Room returns how many bytes the sender may send again. If this is 0 because the destination is slow, room is closed when
// Room is to be called again.
func (s *Sink) Room() (taken int, room <-chan struct{}) {
	if s.bytes < atOnce {
		return 0, nil
	}
	full := s.source.Full(atOnce)
	switch {
	case full == nil:
		taken, s.bytes, s.awaits = s.bytes, 0, false
		return taken, nil
	case s.awaits:
		return 0, nil // the caller knows
	default:
		s.awaits = true
		return 0, full
	}
}

// Await calls tell when room is closed, unless over is closed before. Without room, it does nothing.
func Await(room, over <-chan struct{}, tell func()) {
	if room == nil {
		return
	}
	go func() {
		select {
		case <-room:
			tell()
		case <-over:
		}
	}()
}

// Woken is called when room was closed, before Room.
func (s *Sink) Woken() { s.awaits = false }
