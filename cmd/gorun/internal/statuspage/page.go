package statuspage

import (
	"context"
	"embed"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

//go:embed assets
var assets embed.FS

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 30 * time.Second
	writeTimeout  = 10 * time.Second // of one answer or event, to a client that does not read
	maxHeader     = 16 << 10
	maxBody       = 4 << 10
	maxConns      = 64 // of clients that may look
	maxStreams    = 16 // of server-sent events
	closeTimeout  = 100 * time.Millisecond
)

// Config is what New needs.
type Config struct {
	Own    *control.Client  // of this node's agent
	Recent *launcher.Recent // what its workers have written
	// Contacts finds the agents of all nodes; nil: this node knows of no other.
	Contacts func(context.Context) (rendezvous.Contacts, error)
	RunID    string
	Endpoint string // where the nodes meet; empty: the job has one node
	Version  string // of gorun
	Token    string // of those who may look; empty: only this user and root may, from this machine
	Logger   *slog.Logger
}

// A Server serves the page.
type Server struct {
	config  Config
	access  access
	metrics *metrics
	job     *watcher
	http    *http.Server
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	all     sync.WaitGroup
	streams chan struct{} // has an entry for each stream
	conns   chan struct{} // has an entry for each connection that may look
}

// New returns a server that listens nowhere yet.
func New(c Config) *Server {
	s := &Server{
		config: c, access: access{token: c.Token}, metrics: newMetrics(c), streams: make(chan struct{}, maxStreams), conns: make(chan struct{}, maxConns),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.job = newWatcher(s.ctx, c)
	mux := http.NewServeMux()
	for path, file := range map[string]string{"/{$}": "assets/index.html", "/page.css": "assets/page.css", "/page.js": "assets/page.js"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, file) })
	}
	mux.HandleFunc("GET /events", s.serveEvents)
	mux.HandleFunc("GET /logs", s.serveLogs)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.metrics)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, DisableCompression: true}))
	s.http = &http.Server{
		Handler: s.guarded(mux), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(io.Discard, "", 0), // clients that misbehave
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	return s
}

// Publish takes a snapshot of this node. It does not wait.
func (s *Server) Publish(n *status.Node) {
	s.metrics.observe(n)
	s.job.change()
}

// Emit takes something that has happened on this node. It does not wait.
func (s *Server) Emit(e status.Entry) { s.metrics.count(e) }

// Serve serves at l, until Close.
func (s *Server) Serve(l net.Listener) {
	logged := func(msg string, args ...any) { s.config.Logger.Debug("status page: "+msg, args...) }
	accepted := &listener{admission.Listen(l, admission.Config{Log: logged}), s}
	s.all.Go(func() { _ = s.http.Serve(accepted) }) // it ends with Close
}

// Close ends all connections.
func (s *Server) Close() {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.all.Wait()
	s.job.wait()
}

// guarded lets only those pass who may look, and says what browsers may do with the answers.
func (s *Server) guarded(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := http.NewResponseController(w)
		_ = to.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only if the client is gone
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		isLogin := r.Method == http.MethodPost && r.URL.Path == "/login"
		if r.ContentLength != 0 && !isLogin {
			_ = to.SetReadDeadline(time.Now())
			http.Error(w, "want a request without a body", http.StatusBadRequest)
			return
		}
		switch {
		case isCrossSite(r):
			http.Error(w, "a page of another site has asked for this", http.StatusForbidden)
		case isLogin:
			_ = to.SetReadDeadline(time.Now().Add(headerTimeout))
			s.access.login(w, r)
		case r.URL.Path == "/page.css" && r.Method == http.MethodGet: // the login page needs it
			mux.ServeHTTP(w, r)
		case !s.access.allows(r):
			s.access.refuse(w)
		case !admitted(r):
			w.Header().Set("Connection", "close")
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

type connKey struct{}

// admitted admits the connection of a request that may look.
func admitted(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*conn)
	return ok && c.admit()
}

// A listener delivers connections that have to prove themselves within the limits of package admission.
type listener struct {
	*admission.Listener
	server *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c.(*admission.Conn), slots: l.server.conns}, nil
}

// A conn is the connection of a client. One that may look has a slot.
type conn struct {
	*admission.Conn
	slots chan struct{}

	mu     sync.Mutex
	has    bool
	closed bool
}

func (c *conn) admit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.has {
		return true
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	if c.closed || !c.Admit() {
		<-c.slots
		return false
	}
	c.has = true
	return true
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.has && !c.closed {
		<-c.slots
	}
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}
