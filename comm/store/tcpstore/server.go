package comm

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

const (
	storeMaxClients = 65536
	// storeFarewell is how long Close lets clients take what they have been answered.
	storeFarewell = time.Second
)

// A StoreServer keeps a store in memory for the [TCPStore] clients that hold its token. One goroutine owns what is
// stored. A client that does not take its answers is disconnected and never holds up the others; so is one
// that does not know the token, or speaks another language.
type StoreServer struct {
	listener *admission.Listener
	access   storeAccess
	log      *slog.Logger

	events  chan storeEvent // unbuffered: one that was received comes after all that were received before it
	settled chan struct{}   // closed when no event is handled any more
	closing chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{} // of clients
}

// ListenStore serves a store on addr, host:port; port 0 takes a free one. Without a token it serves only programs of this user on
// this machine: they have a token of their own (see "A token" in docs/comm.md). Without a token, or with one that can be guessed,
// it refuses an addr that other machines can reach. A nil log discards.
func ListenStore(addr string, token []byte, log *slog.Logger) (*StoreServer, error) {
	access, err := byToken(token)
	if err != nil {
		return nil, err
	}
	return listenStore(addr, access, log)
}

func listenStore(addr string, access storeAccess, log *slog.Logger) (*StoreServer, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if access.secret.isOwn() && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN", addr)
	}
	if err := auth.CheckSecret(access.secret.token); err != nil && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network: %w", addr, err)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return serveStore(l, access, log), nil
}

// ServeStore serves a store on l, which it closes in the end. Without a token it serves only programs of this user on this machine:
// they have a token of their own. If there is no place for the file of that token, ServeStore logs an error and serves nobody.
// A nil log discards.
func ServeStore(l net.Listener, token []byte, log *slog.Logger) *StoreServer {
	access, err := byToken(token)
	if err != nil && log != nil {
		log.Error("this store lets nobody in", "error", err)
	}
	return serveStore(l, access, log)
}

func serveStore(l net.Listener, access storeAccess, log *slog.Logger) *StoreServer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &StoreServer{
		listener: admission.Listen(l, admission.Config{Allow: access.allow, Log: log.With("store", l.Addr().String()).Info}),
		access:   access, log: log,
		events: make(chan storeEvent), settled: make(chan struct{}), closing: make(chan struct{}),
		conns: map[net.Conn]struct{}{},
	}
	s.running.Go(s.own)
	s.running.Go(s.accept)
	return s
}

// Addr returns the address that is listened on, as host:port.
func (s *StoreServer) Addr() string { return s.listener.Addr().String() }

// Close ends the store. What clients were answered before, they still get, within a second; then their connections
// are closed, and what they ask for fails. Closing again does nothing.
func (s *StoreServer) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	for conn := range s.conns {
		_ = conn.SetReadDeadline(time.Now()) // wakes its reader, which takes leave
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// accept takes connections until the listener is closed.
func (s *StoreServer) accept() {
	for {
		conn, err := s.listener.AcceptConn()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

// serve has one connection from its handshake to its end.
func (s *StoreServer) serve(conn *admission.Conn) {
	defer func() { _ = conn.Close() }()
	defer s.forget(conn)
	stream, err := s.access.accept(conn, func() error { return s.admit(conn) })
	if err != nil {
		conn.TurnedAway(err)
		return
	}
	(&storeClient{server: s, conn: stream, out: newStoreOutbox(), waits: map[uint64]*storeWaiter{}}).serve()
}

// admit makes the other end of conn, which has proven itself, one more client, if there is room. Close finds it from now on.
func (s *StoreServer) admit(conn *admission.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case len(s.conns) >= storeMaxClients:
		return fmt.Errorf("there are %d clients already", storeMaxClients)
	case !conn.Admit():
		return net.ErrClosed
	}
	s.conns[conn] = struct{}{}
	return nil
}

func (s *StoreServer) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
