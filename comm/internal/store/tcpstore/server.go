package tcpstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

const (
	maxClients = 65536
	// closeTimeout is how long Close waits for a client that takes nothing of its replies.
	closeTimeout = 5 * time.Second
	// longestClose is how long it waits for all clients, however slowly they take their replies.
	longestClose = 10 * time.Second
)

// A Server keeps a store in memory for the [Client]s that have its token. One goroutine owns the values. The server
// disconnects a client that does not read its replies, and one that does not have the token or sends a malformed
// request. None of them holds up the others.
type Server struct {
	listener *admission.Listener
	creds    credentials
	log      *slog.Logger

	events  chan event    // unbuffered: an event that was received comes after all that were received before it
	stopped chan struct{} // closed when handleEvents has returned
	closing chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	closeBy time.Time             // set before closing is closed
	conns   map[net.Conn]struct{} // of clients
}

// Listen starts a server on addr, host:port. Port 0 stands for a free port. Without a token, or with one that can be
// guessed, Listen refuses an addr that other machines can reach.
func Listen(addr string, cfg Config) (*Server, error) {
	creds, err := cfg.credentials()
	if err != nil {
		return nil, err
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if creds.token.IsLoopback() && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN", addr)
	}
	if err := auth.CheckSecret(creds.token.Bytes()); err != nil && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network: %w", addr, err)
	}
	l, err := net.ListenTCP("tcp", at)
	if errors.Is(err, syscall.EADDRNOTAVAIL) && at.IP.IsLoopback() { // a machine may have no IPv4
		if other, err6 := net.ResolveTCPAddr("tcp6", addr); err6 == nil && other.IP.IsLoopback() {
			l, err = net.ListenTCP("tcp", other)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return serve(l, creds, cfg.Log), nil
}

// Serve starts a server on l, which Close closes. Without a token it turns away every connection from another machine.
// If the credentials of cfg cannot be had, Serve says so in the log, and the server turns away every connection.
func Serve(l net.Listener, cfg Config) *Server {
	creds, err := cfg.credentials()
	if err != nil && cfg.Log != nil {
		cfg.Log.Error("this store lets nobody in", "error", err)
	}
	return serve(l, creds, cfg.Log)
}

func serve(l net.Listener, creds credentials, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		listener: admission.Listen(l, admission.Config{Allow: creds.allow, Log: log.With("store", l.Addr().String()).Info}),
		creds:    creds, log: log,
		events: make(chan event), stopped: make(chan struct{}), closing: make(chan struct{}),
		conns: map[net.Conn]struct{}{},
	}
	s.running.Go(s.handleEvents)
	s.running.Go(func() { s.listener.Serve(&s.running, s.serve) })
	return s
}

// Addr returns the address of the listener as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the store. Clients still get the replies to what the server has done, unless they take nothing of them for
// five seconds, or not all of them in ten. Then their connections are closed, and their calls fail. Closing again does
// nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.closeBy = time.Now().Add(longestClose)
	close(s.closing)
	for conn := range s.conns {
		_ = conn.SetReadDeadline(time.Now()) // wakes its reader
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// replyDeadline is until when a client must take some of its replies, once the server is closing.
func (s *Server) replyDeadline() time.Time {
	if soon := time.Now().Add(closeTimeout); soon.Before(s.closeBy) {
		return soon
	}
	return s.closeBy
}

// serve serves one connection from its handshake to its end.
func (s *Server) serve(conn *admission.Conn) {
	defer func() { _ = conn.Close() }()
	defer s.remove(conn)
	stream, err := s.creds.serverHandshake(conn, func() error { return s.admit(conn) })
	if err != nil {
		conn.TurnedAway(err)
		return
	}
	newServerConn(s, stream).serve()
}

// admit counts conn, which has proven itself, among the clients if there is room. Close finds it from now on.
func (s *Server) admit(conn *admission.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case len(s.conns) >= maxClients:
		return fmt.Errorf("there are %d clients already", maxClients)
	case !conn.Admit():
		return net.ErrClosed
	}
	s.conns[conn] = struct{}{}
	return nil
}

// remove no longer counts conn among the clients.
func (s *Server) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
