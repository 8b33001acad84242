package etcdstore

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A relay is a way to a server that can be cut, or fall silent.
type relay struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	silent chan struct{} // closed when bytes pass again; nil: they do
	conns  map[net.Conn]bool
}

func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: target, conns: make(map[net.Conn]bool)}
	r.all.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.set(true)
		r.all.Wait()
	})
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// set cuts the way, or mends it. Connections that are cut stay so.
func (r *relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	r.pass()
	for c := range r.conns {
		if cut {
			_ = c.Close()
		}
	}
}

// hush keeps back what is sent either way, until it is called with false.
func (r *relay) hush(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass()
	if silent {
		r.silent = make(chan struct{})
	}
}

// pass lets bytes pass. The caller holds mu.
func (r *relay) pass() {
	if r.silent != nil {
		close(r.silent)
		r.silent = nil
	}
}

// A hushed reader keeps back what it has read while the relay is silent.
type hushed struct {
	io.Reader
	relay *relay
}

func (h hushed) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.relay.mu.Lock()
	silent := h.relay.silent
	h.relay.mu.Unlock()
	if silent != nil {
		<-silent
	}
	return n, err
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.all.Go(func() { r.serve(c) })
	}
}

func (r *relay) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	if !r.add(c) {
		return
	}
	defer r.remove(c)
	s, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	r.all.Go(func() {
		_, _ = io.Copy(c, hushed{s, r})
		_ = c.Close()
	})
	_, _ = io.Copy(s, hushed{c, r})
}

func (r *relay) add(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cut {
		r.conns[c] = true
	}
	return !r.cut
}

func (r *relay) remove(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
