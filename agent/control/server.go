package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/launcher/recent"
)

const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = 10 * time.Second
	maxHeader      = 8 << 10
	maxConns       = 64               // that are answered at a time
	commandTimeout = 5 * time.Second  // in which the agent's loop takes a command
	answerTimeout  = 30 * time.Second // in which it answers
	writeTimeout   = 10 * time.Second // of one document or line, to a client that does not read
	closeTimeout   = 100 * time.Millisecond
	askTimeout     = time.Second            // in which a worker says what it does
	freshTime      = 300 * time.Millisecond // for which its answer is used again
)

// Config is what New needs.
type Config struct {
	Recent *recent.Workers // the last lines of the workers
	// Ask asks a worker with this progress file what it does; nil: hang.Doing.
	Ask func(ctx context.Context, file string) string
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

	streams streams

	mu      sync.Mutex
	node    *status.Node    // the newest snapshot; nil: none
	waiting *status.Waiting // nil: for nothing
	remove  func()          // removes the socket's file; nil: there is none
	closed  bool

	asking sync.Mutex
	asked  time.Time
	of     []status.Worker // that were asked then, with their answers
}

// New returns a server that listens nowhere yet.
func New(c Config) *Server {
	if c.Ask == nil {
		c.Ask = hang.Doing
	}
	s := &Server{config: c, commands: make(chan agent.Command), slots: make(chan struct{}, maxConns)}
	s.streams = streams{conns: make(chan net.Conn), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.serveStatus)
	mux.HandleFunc("GET /logs", s.serveLogs)
	mux.HandleFunc("POST /probe", s.serveProbe)
	for _, kind := range []agent.CommandKind{agent.CommandStop, agent.CommandKill, agent.CommandDrain, agent.CommandRestart, agent.CommandScale, agent.CommandStacks} {
		mux.HandleFunc("POST /"+string(kind), func(w http.ResponseWriter, r *http.Request) { s.serveCommand(w, r, kind) })
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(mux, w, r) }), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(discard{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	return s
}

// serve refuses requests with a body, for which no time would be too long, except probes.
func serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.URL.Path == "/probe" {
		mux.ServeHTTP(w, r)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // fails only if the client is gone
	refuse(w, http.StatusBadRequest, errors.New("want a request without a body"))
}

// discard takes what package http logs about clients that misbehave.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

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
	s.remove = remove
	s.all.Go(func() { _ = s.http.Serve(&listener{admission.Listen(l, admission.Config{Allow: allowUser}), s}) })
	go removeDead() // which may have to wait for an agent that is stopped
	s.mu.Unlock()
	return nil
}

// Close ends all connections, and removes the socket.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.streams.end()
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

// ServeConn serves one connection, of somebody who may steer the job. It closes the connection if there are too many.
func (s *Server) ServeConn(conn net.Conn) {
	slot, ok := s.slot(conn)
	if !ok {
		return
	}
	s.mu.Lock()
	if !s.closed && !s.streams.served {
		s.streams.served = true
		s.all.Go(func() { _ = s.http.Serve(&s.streams) })
	}
	s.mu.Unlock()
	select {
	case s.streams.conns <- slot:
	case <-s.streams.done:
		_ = slot.Close()
	}
}

// slot returns a connection with a slot. Without one left, it closes the connection.
func (s *Server) slot(conn net.Conn) (net.Conn, bool) {
	select {
	case s.slots <- struct{}{}:
		return &slotConn{Conn: conn, release: sync.OnceFunc(func() { <-s.slots })}, true
	default:
		_ = conn.Close()
		return nil, false
	}
}

// streams is a net.Listener of connections that others have accepted.
type streams struct {
	conns  chan net.Conn
	done   chan struct{} // closed at the end
	served bool
	once   sync.Once
}

func (l *streams) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *streams) Addr() net.Addr { return &net.TCPAddr{} }
func (l *streams) Close() error   { l.end(); return nil }
func (l *streams) end()           { l.once.Do(func() { close(l.done) }) }

// A listener delivers the connections of users who may steer the job.
type listener struct {
	*admission.Listener
	server *Server
}

// Accept implements net.Listener. It closes connections that are too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := conn.(*admission.Conn)
		if !c.Admit() { // the kernel has said who it is
			continue
		}
		if slot, ok := l.server.slot(c.NetConn()); ok {
			return slot, nil
		}
	}
}

// A slotConn gives back its slot when it is closed.
type slotConn struct {
	net.Conn
	release func()
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// snapshot returns the newest snapshot, with what the node waits for and what its workers do; nil: there is none yet.
func (s *Server) snapshot(ctx context.Context) *status.Node {
	s.mu.Lock()
	last, waiting := s.node, s.waiting
	s.mu.Unlock()
	if last == nil {
		return nil
	}
	n := *last
	n.At, n.Waiting, n.Workers = time.Now(), waiting, s.withDoing(ctx, n.Workers)
	return &n
}

// withDoing returns workers with what they do. Of clients who ask at the same time only one asks the workers.
func (s *Server) withDoing(ctx context.Context, workers []status.Worker) []status.Worker {
	s.asking.Lock()
	defer s.asking.Unlock()
	same := func(a, b status.Worker) bool { return a.Pid == b.Pid && a.State == b.State && a.Rank == b.Rank }
	if time.Since(s.asked) < freshTime && slices.EqualFunc(workers, s.of, same) {
		return s.of
	}
	all := slices.Clone(workers)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range all {
		if w := &all[i]; w.State == status.WorkerRunning && w.ProgressFile != "" {
			asking.Go(func() { w.Doing = s.config.Ask(ctx, w.ProgressFile) })
		}
	}
	asking.Wait()
	s.asked, s.of = time.Now(), all
	return all
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	n := s.snapshot(r.Context())
	if n == nil {
		refuse(w, http.StatusServiceUnavailable, errors.New("the job is just starting"))
		return
	}
	write(w, n)
}

// A Reply is the answer to a command.
type Reply struct {
	Error  string               `json:"error,omitempty"` // why it was refused; empty: it is carried out
	Stacks []agent.WorkerStacks `json:"stacks,omitempty"`
	Files  string               `json:"files,omitempty"`
}

func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, kind agent.CommandKind) {
	force, err := parseSwitch(r, "force")
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	command := agent.Command{Kind: kind, Force: force}
	if kind == agent.CommandScale {
		if command.Nodes, err = parseNodes(r); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	}
	answer := make(chan agent.Answer, 1)
	command.Answer = answer
	select {
	case s.commands <- command:
	case <-time.After(commandTimeout):
		refuse(w, http.StatusServiceUnavailable, errors.New("the agent does not take commands now"))
		return
	case <-r.Context().Done():
		refuse(w, http.StatusServiceUnavailable, errors.New("the job is ending on this node"))
		return
	}
	select {
	case a := <-answer:
		reply := Reply{Stacks: a.Stacks, Files: a.Files}
		if a.Err != nil {
			reply.Error = oneLine(a.Err)
		}
		write(w, reply)
	case <-time.After(answerTimeout):
		refuse(w, http.StatusGatewayTimeout, fmt.Errorf("no answer within %v", answerTimeout))
	case <-r.Context().Done():
	}
}

// parseNodes reads how many nodes a round may have: nodes=MIN:MAX.
func parseNodes(r *http.Request) (nodes [2]int, err error) {
	text := r.URL.Query().Get("nodes")
	low, high, _ := strings.Cut(text, ":")
	for i, part := range []string{low, high} {
		if nodes[i], err = strconv.Atoi(part); err != nil || nodes[i] < 1 {
			return nodes, fmt.Errorf("nodes=%.20q: want MIN:MAX", text)
		}
	}
	if nodes[0] > nodes[1] {
		return nodes, fmt.Errorf("nodes=%.20q: the minimum exceeds the maximum", text)
	}
	return nodes, nil
}

// parseSwitch reads a parameter that is there or not, or a number.
func parseSwitch(r *http.Request, name string) (bool, error) {
	if !r.URL.Query().Has(name) {
		return false, nil
	}
	text := r.URL.Query().Get(name)
	if text == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s=%.20q: want 1 or 0", name, text)
	}
	return on, nil
}

func refuse(w http.ResponseWriter, code int, err error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only if the client is gone
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(Reply{Error: oneLine(err)}) // the client may be gone
}

func write(w http.ResponseWriter, document any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}
