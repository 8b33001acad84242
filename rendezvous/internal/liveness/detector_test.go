package liveness

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is more than anything here takes.
const patience = 60 * time.Second

var secret = []byte("a secret of the job")

// A process is one that has a Detector.
type process struct {
	*Detector
	t     *testing.T
	key   string
	ended chan string // keys of those who have called and are no more

	mu    sync.Mutex
	calls []net.Conn // that the process has made
}

func start(t *testing.T, key string, change func(*Config)) *process {
	t.Helper()
	p := &process{t: t, key: key, ended: make(chan string, 10)}
	c := Config{Key: key, Host: "127.0.0.1", Secret: secret, Ended: func(key, _ string) { p.ended <- key }, Dial: p.dial}
	if change != nil {
		change(&c)
	}
	e, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	p.Detector = e
	t.Cleanup(e.Close)
	return p
}

func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		p.mu.Lock()
		p.calls = append(p.calls, c)
		p.mu.Unlock()
	}
	return c, err
}

func (p *process) addr() string { return p.listener.Addr().String() }

// monitor connects p to another process, and waits for that. The result says whether the other one has ended.
func (p *process) monitor(to *process) <-chan bool {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool, 1)
	var all sync.WaitGroup
	all.Go(func() { ended <- p.Monitor(ctx, to.key, to.addr(), nil) })
	p.t.Cleanup(func() { cancel(); all.Wait() })
	until(p.t, func() bool { return to.Connected(p.key) })
	return ended
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}

func get[T any](t *testing.T, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(patience):
		t.Fatal("nothing happens")
	}
	return got
}

// TestProcessEnds: whichever of two processes ends, the other one notices.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", nil), start(t, "b", nil)
	ended := a.monitor(b)
	a.Close()
	if key := get(t, b.ended); key != "a" {
		t.Errorf("%q has ended", key)
	}
	if get(t, ended) {
		t.Error("b has ended")
	}

	c := start(t, "c", nil)
	ended = c.monitor(b)
	b.Close()
	if !get(t, ended) {
		t.Error("b has not ended")
	}
	if err := c.Ping(t.Context(), "b", b.addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("b is reached: %v", err)
	}
}

// TestCut: of a connection that is cut while both live nothing is left but a new one.
func TestCut(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", nil), start(t, "b", nil)
	ended := a.monitor(b)
	until(t, func() bool { return a.monitors(b) })
	for range 3 {
		a.mu.Lock()
		calls := a.calls
		a.calls = nil
		a.mu.Unlock()
		for _, c := range calls { // the last one is monitored
			_ = c.(*net.TCPConn).SetLinger(0) // so that it is reset
			_ = c.Close()
		}
		until(t, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.calls) > 0 && a.monitors(b) && b.Connected("a") // a new one, since a has called again
		})
	}
	nothing(t, b, ended)
}

// monitors reports whether p has a connection to another process.
func (p *process) monitors(to *process) bool {
	key, _ := p.monitored.Load(to.addr())
	return key == to.key
}

// nothing is to happen for a good while.
func nothing(t *testing.T, p *process, ended <-chan bool) {
	t.Helper()
	select {
	case key := <-p.ended:
		t.Errorf("%s is taken to have ended", key)
	case <-ended:
		t.Error("who is called is taken to have ended")
	case <-time.After(3 * grace):
	}
}

// TestNoAnswerIsNoEvidence: connections that break are held against nobody whose port does not refuse.
func TestNoAnswerIsNoEvidence(t *testing.T) {
	t.Parallel()
	// A process that is stopped right after its connection was cut: its kernel still accepts calls.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a := start(t, "a", nil)
	ended := make(chan bool, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- a.Monitor(ctx, "stopped", l.Addr().String(), nil) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Accept(c, secret, func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, a, ended)
	cancel()
	<-ended

	// A process that cannot be called, behind a network that swallows its calls after a while.
	b := start(t, "b", func(c *Config) {
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	lone := a.monitor(b)
	a.Close()
	if get(t, lone) {
		t.Error("b has ended")
	}
	nothing(t, b, nil)
}

// TestPing tells who answers.
func TestPing(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", nil), start(t, "b", nil)
	stranger := start(t, "c", func(c *Config) { c.Secret = []byte("another secret") })
	for _, c := range []struct {
		from *process
		key  string
		want string
	}{
		{a, "b", ""},
		{a, "c", "refused: another process answers here"},
		{stranger, "b", "wrong token"},
	} {
		err := c.from.Ping(t.Context(), c.key, b.addr())
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s reaches %s: %v, want %q", c.from.key, c.key, err, c.want)
		}
	}
	stranger.Use(secret)
	if err := stranger.Ping(t.Context(), "b", b.addr()); err != nil {
		t.Errorf("with the secret: %v", err)
	}
	nothing(t, b, nil)
}

// TestStrangers are told nothing, and cannot keep those out who belong here.
func TestStrangers(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", nil), start(t, "b", nil)
	var silent []net.Conn
	for range 600 {
		c, err := net.Dial("tcp", b.addr())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	a.monitor(b)
	for _, c := range silent {
		_, _ = io.WriteString(c, "no hello") // until it speaks the kernel may have it wait
	}
	for _, c := range silent {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a stranger hears %q, %v", got, err)
		}
		_ = c.Close()
	}
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: b\r\n\r\n", strings.Repeat("x", 1<<16)} {
		c, err := net.Dial("tcp", b.addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text) // it may be cut off
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("who says %.10q hears %q, %v", text, got, err)
		}
		_ = c.Close()
	}
	if !b.Connected("a") {
		t.Error("the connection has not lasted")
	}
}
