package workergroup

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/rounds"
)

// maxPath is how many bytes the path of a socket may have.
const maxPath = 107

// acceptDelay is how long a socket waits after it could not accept a connection.
const acceptDelay = 100 * time.Millisecond

// queued is how many documents may wait for a worker that does not read.
const queued = 64

// A socket is where one worker, or a process that it has started, connects to learn of rounds.
type socket struct {
	path     string
	worker   *worker
	listener *net.UnixListener

	mu      sync.Mutex
	conn    net.Conn      // nil: the worker is not connected
	drained chan struct{} // closed when everything that the worker has sent on its last connection has been read; nil: it had none
	queue   chan rounds.Round
	round   rounds.Round  // that the worker is in, or has to enter
	over    *rounds.Round // the last document about the end of round; nil: round goes on
	closed  bool
	refused map[string]bool // reasons for which connections were refused, and that have been logged
}

// listen returns the socket of a worker that starts in a round.
func listen(dir, name string, w *worker, r rounds.Round) (*socket, error) {
	path := filepath.Join(dir, name)
	if len(path) > maxPath {
		return nil, fmt.Errorf("no socket for local rank %d: its path has %d bytes, want at most %d: choose a shorter $TMPDIR (%s)", w.local, len(path), maxPath, path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return nil, fmt.Errorf("no socket for local rank %d: %w", w.local, err)
	}
	s := &socket{path: path, worker: w, listener: l}
	s.round = s.withSocket(r)
	go s.accept()
	return s, nil
}

// withSocket returns r with the path of this socket among its variables.
func (s *socket) withSocket(r rounds.Round) rounds.Round {
	r.Env = maps.Clone(r.Env)
	r.Env[socketVariable] = s.path
	return r
}

// accept takes one connection at a time, from the worker, or from what it has started.
func (s *socket) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files
			s.refuse(err.Error())
			time.Sleep(acceptDelay)
			continue
		}
		if why := s.connect(conn); why != "" {
			_ = conn.Close()
			s.refuse(why)
		}
	}
}

// refuse logs why a connection was refused, once for each reason.
func (s *socket) refuse(why string) {
	s.mu.Lock()
	known := s.refused[why] || s.closed
	if s.refused == nil {
		s.refused = make(map[string]bool)
	}
	s.refused[why] = true
	s.mu.Unlock()
	if !known {
		s.worker.warn("refuses a connection: " + why)
	}
}

// connect takes a connection, or returns why it does not.
func (s *socket) connect(conn *net.UnixConn) (why string) {
	<-s.worker.started
	if peer := peerOf(conn); !isBelow(peer, s.worker.pid) {
		return "it comes from a process that the worker has not started"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		return "the worker is connected already"
	}
	if s.closed {
		return "the worker has ended"
	}
	s.conn, s.queue, s.drained = conn, make(chan rounds.Round, queued), make(chan struct{})
	s.queue <- s.round
	if s.over != nil {
		s.queue <- *s.over
	}
	go write(conn, s.queue)
	go s.read(conn, s.drained)
	return ""
}

func write(conn net.Conn, queue <-chan rounds.Round) {
	for r := range queue {
		if _, err := conn.Write(rounds.Encode(r)); err != nil {
			return // the worker has disconnected, which the reader sees when it has read what is left
		}
	}
}

func (s *socket) read(conn net.Conn, drained chan<- struct{}) {
	defer close(drained)
	for reader := rounds.NewReader[rounds.Message](conn); ; {
		m, err := reader.Read()
		if err != nil {
			s.disconnect(conn)
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
				s.worker.warn(fmt.Sprintf("takes part no more, since what it sends cannot be read: %v", err))
			}
			s.worker.disconnected()
			return
		}
		s.worker.receive(m)
	}
}

// drain waits until everything that the worker has sent before it ended has been read. It waits exitDelay at most: a process that the worker
// has started may still be connected.
func (s *socket) drain() {
	s.mu.Lock()
	drained := s.drained
	s.mu.Unlock()
	if drained == nil {
		return
	}
	select {
	case <-drained:
	case <-time.After(exitDelay):
	}
}

func (s *socket) disconnect(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnectLocked(conn)
}

func (s *socket) disconnectLocked(conn net.Conn) {
	if s.conn == conn {
		close(s.queue)
		s.conn, s.queue = nil, nil
	}
	_ = conn.Close() // fails if it is closed
}

// send sends a document to the worker, if it is connected. A worker that does not read what it is sent no longer takes part.
func (s *socket) send(r rounds.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Over {
		s.over = &r
	} else {
		r = s.withSocket(r)
		s.round, s.over = r, nil
	}
	if s.conn == nil {
		return
	}
	select {
	case s.queue <- r:
	default:
		s.disconnectLocked(s.conn)
		go s.worker.warn("takes part no more, since it does not read what it is told")
	}
}

func (s *socket) isConnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil
}

// close ends the socket, and removes it.
func (s *socket) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
