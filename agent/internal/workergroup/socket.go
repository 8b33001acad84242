package workergroup

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/env"
)

// maxPath is how many bytes the path of a socket may have.
const maxPath = 107

// acceptDelay is how long a socket waits after it could not accept a connection.
const acceptDelay = 100 * time.Millisecond

// queued is how many documents may wait for a worker that does not read.
const queued = 64

// A socket is where one worker, or a process that it has started, connects to learn of rounds. Its goroutines send
// Messages until it is closed.
type socket struct {
	path     string
	worker   *worker // which they only name
	messages chan<- Message
	listener *net.UnixListener // nil: nobody can connect yet
	closed   chan struct{}
}

// A Message is what a socket sends to its Group. One field is set beside the worker and its connection.
type Message struct {
	worker    *worker
	conn      *connection
	connected bool         // conn has been made
	document  *env.Message // has come on conn
	err       error        // conn has ended
	refused   string       // why a connection was refused
}

// A connection is one of a worker to its socket.
type connection struct {
	net.Conn
	queue chan env.Round // closed when no more will be sent
}

func newSocket(path string, w *worker) *socket {
	return &socket{path: path, worker: w, messages: w.group.messages, closed: make(chan struct{})}
}

func (s *socket) listen(local int) (err error) {
	if len(s.path) > maxPath {
		return fmt.Errorf("no socket for local rank %d: its path has %d bytes, want at most %d: choose a shorter $TMPDIR (%s)", local, len(s.path), maxPath, s.path)
	}
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: s.path}); err != nil {
		return fmt.Errorf("no socket for local rank %d: %w", local, err)
	}
	return nil
}

// close ends the socket, and removes it.
func (s *socket) close() {
	close(s.closed)
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// deliver sends a message, unless the socket has been closed.
func (s *socket) deliver(m Message) (sent bool) {
	m.worker = s.worker
	select {
	case s.messages <- m:
		return true
	case <-s.closed:
		return false
	}
}

// accept takes connections from the process, or from what it has started.
func (s *socket) accept(pid int) {
	for {
		conn, err := s.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files
			s.deliver(Message{refused: err.Error()})
			time.Sleep(acceptDelay)
		case !isOf(conn, pid, socketVariable+"="+s.path):
			_ = conn.Close()
			s.deliver(Message{refused: "it comes from a process that the worker has not started"})
		case !s.deliver(Message{conn: &connection{conn, make(chan env.Round, queued)}, connected: true}):
			_ = conn.Close()
		}
	}
}

// Handle handles a message of Messages.
func (g *Group) Handle(m Message, now time.Time) {
	w := m.worker
	switch {
	case m.connected && w.gone:
		_ = m.conn.Close()
	case m.connected && w.conn != nil:
		_ = m.conn.Close()
		w.refuse("the worker is connected already")
	case m.connected:
		w.connect(m.conn)
	case m.refused != "":
		w.refuse(m.refused)
	case m.document != nil:
		w.receive(*m.document, now)
	default:
		w.disconnected(m.conn, m.err, now)
	}
}

// refuse logs why a connection was refused, once for each reason.
func (w *worker) refuse(why string) {
	if !w.refused[why] && !w.gone {
		if w.refused == nil {
			w.refused = make(map[string]bool)
		}
		w.refused[why] = true
		w.warn("refuses a connection: " + why)
	}
}

func (w *worker) connect(c *connection) {
	w.conn, w.reading = c, true
	c.queue <- w.current
	if w.over != nil {
		c.queue <- *w.over
	}
	go c.write()
	go c.read(w.socket)
}

// disconnect ends its connection, if it has one. What has come on it is still read.
func (w *worker) disconnect() {
	if w.conn != nil {
		close(w.conn.queue)
		_ = w.conn.Close()
		w.conn = nil
	}
}

// disconnected is called when everything has been read that has come on a connection. Perhaps the worker has ended,
// too: then its exit follows, if it has not come.
func (w *worker) disconnected(c *connection, err error, now time.Time) {
	if w.conn == c {
		w.disconnect()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
		w.warn(fmt.Sprintf("takes part no more, since what it sends cannot be read: %v", err))
	}
	w.cut = now
	if w.reading = w.conn != nil; !w.reading && w.left != nil && w.exit == nil {
		w.exited()
	}
}

// send reports whether there is room for a document.
func (c *connection) send(r env.Round) bool {
	select {
	case c.queue <- r:
		return true
	default:
		return false
	}
}

func (c *connection) write() {
	for r := range c.queue {
		if _, err := c.Write(env.Encode(r)); err != nil {
			return // the worker has disconnected, which the reader sees when it has read what is left
		}
	}
}

func (c *connection) read(s *socket) {
	for reader := env.NewReader[env.Message](c); ; {
		m, err := reader.Read()
		if err != nil {
			s.deliver(Message{conn: c, err: err})
			return
		}
		s.deliver(Message{conn: c, document: &m})
	}
}
