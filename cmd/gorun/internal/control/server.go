package control

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher"
)

const (
	headerTimeout = 5 * time.Second
	maxHeader     = 8 << 10
	maxConns      = 64              // that are answered at a time, without followers
	maxFollowers  = 32              // clients that follow the output, which may take as long as the job
	slotTimeout   = 2 * time.Second // in which one of maxConns becomes free
	closeTimeout  = 100 * time.Millisecond
)

// Config is what New needs.
type Config struct {
	Recent *launcher.Recent // the last lines of the workers
	// Ask asks a worker with this progress file what it does; nil: hang.Ask.
	Ask func(ctx context.Context, file string) *progress.Status
}

// A Server answers questions about an agent's node, and passes commands on to the agent.
type Server struct {
	config   Config
	commands chan agent.Command
	http     *http.Server
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	all      sync.WaitGroup
	slots    chan struct{} // has an entry for each connection that is being answered
	follow   chan struct{} // has an entry for each client that follows the output

	streams streams

	mu      sync.Mutex
	node    *status.Node    // the newest snapshot; nil: none
	waiting *status.Waiting // nil: for nothing
	remove  func()          // ends Listen, and removes the socket's file; nil: there is none
	closed  bool

	asking sync.Mutex
	asked  time.Time
	of     []status.Worker // that were asked then, with their answers
}

// New returns a server that listens nowhere yet.
func New(c Config) *Server {
	if c.Ask == nil {
		c.Ask = hang.Ask
	}
	s := &Server{config: c, commands: make(chan agent.Command), slots: make(chan struct{}, maxConns), follow: make(chan struct{}, maxFollowers)}
	s.streams = streams{conns: make(chan net.Conn), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.serveStatus)
	mux.HandleFunc("GET /logs", s.serveLogs)
	for _, kind := range []agent.CommandKind{agent.CommandStop, agent.CommandKill, agent.CommandDrain, agent.CommandRestart, agent.CommandScale, agent.CommandStacks} {
		mux.HandleFunc("POST /"+string(kind), func(w http.ResponseWriter, r *http.Request) { s.serveCommand(w, r, kind) })
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(mux, w, r) }), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(io.Discard, "", 0), // clients that misbehave
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	s.http.SetKeepAlivesEnabled(false) // a client that has its answer must not keep its slot
	s.all.Go(func() { _ = s.http.Serve(&s.streams) })
	return s
}

// serve refuses requests with a body, for which no time would be too long.
func serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		mux.ServeHTTP(w, r)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // fails only if the client is gone
	refuse(w, http.StatusBadRequest, errors.New("want a request without a body"))
}

// Commands delivers what people ask of the agent.
func (s *Server) Commands() <-chan agent.Command { return s.commands }

// Publish makes n the newest snapshot.
func (s *Server) Publish(n *status.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = n
}

// SetWaiting sets what the node waits for; empty: nothing.
func (s *Server) SetWaiting(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case reason == "":
		s.waiting = nil
	case s.waiting == nil:
		s.waiting = &status.Waiting{For: reason, Since: time.Now()}
	default:
		s.waiting = &status.Waiting{For: reason, Since: s.waiting.Since}
	}
}

// Listen serves on a Unix socket of this process. A job whose socket cannot be made goes on without it.
func (s *Server) Listen(job string) error {
	l, remove, err := listen(job)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		remove()
		return nil
	}
	admitted := admission.Listen(l, admission.Config{Allow: allowUser})
	s.remove = func() {
		remove()
		_ = admitted.Close()
	}
	s.all.Go(func() {
		admitted.Serve(&s.all, func(c *admission.Conn) {
			if c.Admit() { // the kernel has said who it is
				s.ServeConn(c.NetConn())
			}
		})
	})
	go removeDead() // which may have to wait for an agent that is stopped
	s.mu.Unlock()
	return nil
}

// Close ends all connections, and removes the socket.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	if s.remove != nil {
		s.remove()
	}
	s.mu.Unlock()
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) // for answers under way
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.all.Wait()
}

// ServeConn serves one connection, of somebody who may steer the job. If there are too many, the connection waits, and
// is closed in the end.
func (s *Server) ServeConn(conn net.Conn) {
	ctx, cancel := context.WithTimeout(s.ctx, slotTimeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		_ = conn.Close()
		return
	}
	slot := &slotConn{Conn: conn, release: sync.OnceFunc(func() { <-s.slots })}
	select {
	case s.streams.conns <- slot:
	case <-s.streams.done:
		_ = slot.Close()
	}
}
