package tcp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

// far makes every peer one of another machine.
func far(t *testing.T) func(rank int, cfg *Config) {
	return func(_ int, cfg *Config) {
		var err error
		cfg.Token = []byte("a secret of 16 bytes and more")
		if cfg.TLS, err = auth.NewIdentity(cfg.Token, "workers"); err != nil {
			t.Fatal(err)
		}
		cfg.Near = func(net.Conn) bool { return false }
	}
}

func TestConformanceOfTLS(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, size int) []transport.Transport { return world(t, size, far(t)) })
}

func TestOnOneMachineNothingIsEncrypted(t *testing.T) {
	trs := world(t, 2, func(rank int, cfg *Config) {
		far(t)(rank, cfg)
		cfg.Near = nil
	})
	got := make(streams, 1)
	trs[1].Serve(got)
	conn, err := trs[0].Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	other := <-got
	for _, c := range []net.Conn{conn, other} {
		if _, encrypted := c.(interface{ ConnectionState() tls.ConnectionState }); encrypted {
			t.Errorf("a stream on loopback is a %T", c)
		}
		_ = c.Close()
	}
	closeAll(t, trs)
}

// streams admits everybody and hands streams on.
type streams chan net.Conn

func (s streams) Admit(int) bool                 { return true }
func (s streams) Connected(_ int, conn net.Conn) { s <- conn }

func closeAll(t *testing.T, trs []transport.Transport) {
	for _, tr := range trs {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The endpoint interrupts reads by a deadline in the past, and goes on where it was.
func TestInterruptedReads(t *testing.T) {
	trs := world(t, 2, far(t))
	defer closeAll(t, trs)
	got := make(streams, 1)
	trs[1].Serve(got)
	conn, err := trs[0].Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other := <-got
	defer other.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() { _, _ = conn.Write(sent) }()
	read, part, interrupted := []byte(nil), make([]byte, 5000), 0
	for len(read) < len(sent) {
		if len(read)%15_000 == 0 && interrupted <= len(read)/15_000 {
			if err := other.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		n, err := other.Read(part)
		read = append(read, part[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			interrupted++
			err = other.SetReadDeadline(time.Time{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if interrupted == 0 || !bytes.Equal(read, sent) {
		t.Errorf("interrupted %d times; the bytes are those sent: %t", interrupted, bytes.Equal(read, sent))
	}
}

// A middle is a network that somebody controls: it passes the handshakes of two calls on as they are, and then joins
// each caller to the other's server.
type middle struct {
	t       *testing.T
	swap    bool
	lns     []net.Listener // one for each call
	servers []string
	mu      sync.Mutex
	heard   bytes.Buffer  // all that callers have said
	done    chan struct{} // closed when run has ended
}

func newMiddle(t *testing.T, swap bool, servers ...string) *middle {
	m := &middle{t: t, swap: swap, servers: servers, done: make(chan struct{})}
	for range servers {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m.lns = append(m.lns, ln)
	}
	return m
}

// run serves one call from each listener, and ends when they have ended.
func (m *middle) run() {
	defer close(m.done)
	type call struct{ caller, server net.Conn }
	calls := make([]call, len(m.lns))
	var ready sync.WaitGroup
	for i, ln := range m.lns {
		ready.Go(func() {
			var err error
			if calls[i].caller, err = ln.Accept(); err == nil {
				calls[i].server, err = net.Dial("tcp", m.servers[i])
			}
			if err != nil {
				m.t.Error(err)
				return
			}
			// The handshake of package auth: magic, nonce, hello; magic, nonce, proof; proof; status, reply, proof.
			for _, part := range []struct {
				from, to net.Conn
				n        int64
			}{
				{calls[i].caller, calls[i].server, 8 + 32 + 2 + helloSize},
				{calls[i].server, calls[i].caller, 8 + 32 + 32},
				{calls[i].caller, calls[i].server, 32},
				{calls[i].server, calls[i].caller, 1 + 2 + 7 + 32},
			} {
				if _, err := io.CopyN(part.to, part.from, part.n); err != nil {
					m.t.Error(err)
				}
			}
		})
	}
	ready.Wait()
	if m.swap {
		calls[0].server, calls[1].server = calls[1].server, calls[0].server
	}
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() { _, _ = io.Copy(io.MultiWriter(c.server, m), c.caller); _ = c.server.Close() })
		wg.Go(func() { _, _ = io.Copy(c.caller, c.server); _ = c.caller.Close() })
	}
	wg.Wait()
	for _, ln := range m.lns {
		_ = ln.Close()
	}
}

func (m *middle) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard.Write(b)
}

func TestWhatTravelsIsEncrypted(t *testing.T) {
	trs := world(t, 2, far(t))
	m := newMiddle(t, false, trs[0].(*Transport).cfg.Peers[1])
	trs[0].(*Transport).cfg.Peers = []string{"", m.lns[0].Addr().String()}
	go m.run()
	got := make(streams, 1)
	trs[1].Serve(got)
	conn, err := trs[0].Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "what nobody else may know"); err != nil {
		t.Fatal(err)
	}
	other := <-got
	read := make([]byte, 25)
	if _, err := io.ReadFull(other, read); err != nil || string(read) != "what nobody else may know" {
		t.Errorf("read %q, %v", read, err)
	}
	_, _ = conn.Close(), other.Close()
	closeAll(t, trs)
	<-m.done
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard.Len() == 0 || bytes.Contains(m.heard.Bytes(), []byte("nobody")) {
		t.Errorf("in between was heard %q", m.heard.String())
	}
}

func TestCallsCannotBeJoined(t *testing.T) {
	log := &testkit.Log{}
	trs := world(t, 4, func(rank int, cfg *Config) {
		far(t)(rank, cfg)
		cfg.Log = log.Logger()
		cfg.Peers = slices.Clone(cfg.Peers)
	})
	peers := trs[0].(*Transport).cfg.Peers
	m := newMiddle(t, true, peers[1], peers[3]) // 0 calls 1, and 2 calls 3
	trs[0].(*Transport).cfg.Peers[1] = m.lns[0].Addr().String()
	trs[2].(*Transport).cfg.Peers[3] = m.lns[1].Addr().String()
	go m.run()
	got := make(streams, 2)
	trs[1].Serve(got)
	trs[3].Serve(got)
	for _, call := range [][2]int{{0, 1}, {2, 3}} {
		go func() { _, _ = trs[call[0]].Dial(t.Context(), call[1]) }()
	}
	for range 2 {
		if conn := <-got; conn != nil {
			t.Error("a stream of another call was handed over")
		}
	}
	<-m.done
	closeAll(t, trs)
	if n := strings.Count(log.String(), "TLS of call"); n != 2 {
		t.Errorf("%d were turned away, want 2:\n%s", n, log.String())
	}
}

// Somebody who has the token but no TLS, as if it had been told otherwise.
func TestWithoutTLSNobodyIsLetIn(t *testing.T) {
	trs := world(t, 2, func(rank int, cfg *Config) {
		far(t)(rank, cfg)
		if rank == 0 {
			cfg.TLS = nil
		}
	})
	got := make(streams, 1)
	trs[1].Serve(got)
	conn, err := trs[0].Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.Repeat("frames that are no TLS", 10)); err != nil {
		t.Fatal(err)
	}
	if handed := <-got; handed != nil {
		t.Error("it was let in")
	}
	_ = conn.Close()
	closeAll(t, trs)
}
