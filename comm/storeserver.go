package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/env/auth"
)

const (
	storeMaxClients = 65536
	// storeLobby is how many connections may be in their handshake at once; others wait to be accepted.
	storeLobby = 128
	// storeHandshake is how long a handshake may take; storeHurried while half the lobby is taken, so that those
	// who connect and say nothing cannot keep the others out.
	storeHandshake = 10 * time.Second
	storeHurried   = time.Second
	// storeFarewell is how long Close lets clients take what they have been answered.
	storeFarewell = time.Second
)

// A StoreServer keeps a store in memory for the [TCPStore] clients that hold its token. One goroutine owns what is
// stored. A client that does not take its answers is disconnected and never holds up the others; so is one
// that does not know the token, or speaks another language.
type StoreServer struct {
	listener net.Listener
	access   storeAccess
	log      *slog.Logger

	events  chan storeEvent // unbuffered: one that was received comes after all that were received before it
	settled chan struct{}   // closed when no event is handled any more
	closing chan struct{}
	lobby   chan struct{} // one entry for each handshake in progress
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	warned bool // the log has a stranger in it
}

// ListenStore serves a store on addr, host:port; port 0 takes a free one. Without a token, or with one that can be guessed, it
// serves this machine only, and refuses an addr that others can reach. A nil log discards.
func ListenStore(addr string, token []byte, log *slog.Logger) (*StoreServer, error) {
	return listenStore(addr, storeAccess{token: token}, log)
}

func listenStore(addr string, access storeAccess, log *slog.Logger) (*StoreServer, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if len(access.token) == 0 && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN", addr)
	}
	if err := auth.CheckSecret(access.token); err != nil && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("store: %s can be reached from the network: %w", addr, err)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return serveStore(l, access, log), nil
}

// ServeStore serves a store on l, which it closes in the end. Without a token it turns away every connection that does
// not come from this machine. A nil log discards.
func ServeStore(l net.Listener, token []byte, log *slog.Logger) *StoreServer {
	return serveStore(l, storeAccess{token: token}, log)
}

func serveStore(l net.Listener, access storeAccess, log *slog.Logger) *StoreServer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &StoreServer{
		listener: l, access: access, log: log,
		events: make(chan storeEvent), settled: make(chan struct{}), closing: make(chan struct{}),
		lobby: make(chan struct{}, storeLobby), conns: map[net.Conn]struct{}{},
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
	const firstPause, longestPause = 5 * time.Millisecond, time.Second
	pause := firstPause
	for {
		select {
		case s.lobby <- struct{}{}:
		case <-s.closing:
			return
		}
		conn, err := s.listener.Accept()
		if err == nil {
			pause = firstPause
			s.running.Go(func() { s.serve(conn) })
			continue
		}
		<-s.lobby
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.log.Warn("store: cannot accept a connection, trying again", "addr", s.Addr(), "error", err)
		select { // out of files, mostly: others may give theirs back
		case <-time.After(pause):
		case <-s.closing:
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// serve has one connection from its handshake to its end.
func (s *StoreServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	stream, err := s.handshake(conn)
	<-s.lobby
	defer s.forget(conn)
	if err != nil {
		s.logStranger(conn, err)
		return
	}
	(&storeClient{server: s, conn: stream, out: newStoreOutbox(), waits: map[uint64]*storeWaiter{}}).serve()
}

// handshake lets the client at the other end of conn prove itself, and returns the connection to go on with.
func (s *StoreServer) handshake(conn net.Conn) (net.Conn, error) {
	limit := storeHandshake
	if len(s.lobby) > cap(s.lobby)/2 {
		limit = storeHurried
	}
	if err := s.setDeadline(conn, time.Now().Add(limit)); err != nil {
		return nil, err
	}
	stream, err := s.access.accept(conn, s.admit)
	if err != nil {
		return nil, err
	}
	return stream, s.setDeadline(conn, time.Time{})
}

// admit says whether there is room for one more client.
func (s *StoreServer) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > storeMaxClients { // one of them is asking
		return fmt.Errorf("there are %d clients already", storeMaxClients)
	}
	return nil
}

// setDeadline also makes sure that Close finds conn, and that what Close sets stays.
func (s *StoreServer) setDeadline(conn net.Conn, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.conns[conn] = struct{}{}
	return conn.SetDeadline(t)
}

func (s *StoreServer) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// logStranger says it aloud once: a port scanner must not fill the log.
func (s *StoreServer) logStranger(conn net.Conn, err error) {
	s.mu.Lock()
	level := slog.LevelInfo
	if s.warned || s.closed {
		level = slog.LevelDebug
	}
	s.warned = true
	s.mu.Unlock()
	s.log.Log(context.Background(), level, "store: turned a connection away", "addr", s.Addr(), "from", conn.RemoteAddr().String(), "error", err)
}
