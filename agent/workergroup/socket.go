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

	"github.com/gorun/gorun/env/rounds"
)

// queued is how many documents may wait for a worker that does not read.
const queued = 64

// A socket is where one worker connects to hear of rounds. Who may connect is up to the directory that it is in.
type socket struct {
	path     string
	worker   *worker
	listener *net.UnixListener

	mu     sync.Mutex
	conn   net.Conn // nil: the worker is not connected
	queue  chan rounds.Round
	round  rounds.Round  // that the worker is in
	over   *rounds.Round // the last word on it; nil: it goes on
	closed bool
}

// listen returns the socket of a worker that starts in a round.
func listen(dir, name string, w *worker, r rounds.Round) (*socket, error) {
	path := filepath.Join(dir, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return nil, fmt.Errorf("no socket for local rank %d: %w", w.local, err)
	}
	s := &socket{path: path, worker: w, listener: l}
	s.round = s.own(r)
	go s.accept()
	return s, nil
}

// own is a Round with this socket in it.
func (s *socket) own(r rounds.Round) rounds.Round {
	r.Env = maps.Clone(r.Env)
	r.Env[socketVariable] = s.path
	return r
}

// accept takes one connection at a time.
func (s *socket) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil && !s.connect(conn):
			_ = conn.Close()
		}
	}
}

func (s *socket) connect(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.conn != nil {
		return false
	}
	s.conn, s.queue = conn, make(chan rounds.Round, queued)
	s.queue <- s.round
	if s.over != nil {
		s.queue <- *s.over
	}
	go write(conn, s.queue)
	go s.read(conn)
	return true
}

func write(conn net.Conn, queue <-chan rounds.Round) {
	for r := range queue {
		if _, err := conn.Write(rounds.Encode(r)); err != nil {
			_ = conn.Close() // which the reader sees
		}
	}
}

func (s *socket) read(conn net.Conn) {
	for reader := rounds.NewReader[rounds.Entry](conn); ; {
		e, err := reader.Read()
		if err != nil {
			s.disconnect(conn)
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
				s.worker.group.Warn(fmt.Sprintf("local rank %d takes part no more, as its answer cannot be read: %v", s.worker.local, err))
			}
			return
		}
		s.worker.entered(e)
	}
}

func (s *socket) disconnect(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		close(s.queue)
		s.conn, s.queue = nil, nil
	}
	_ = conn.Close() // fails if it is closed
}

// send tells the worker, if it is connected. A worker that does not read what it is told takes part no more.
func (s *socket) send(r rounds.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Over {
		s.over = &r
	} else {
		r = s.own(r)
		s.round, s.over = r, nil
	}
	if s.conn == nil {
		return
	}
	select {
	case s.queue <- r:
	default:
		_ = s.conn.Close()
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
