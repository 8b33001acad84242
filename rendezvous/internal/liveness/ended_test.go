package liveness

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/auth"
)

// A peer answers calls as a script says, a letter for each call: it refuses (r), hangs up (h), is silent (s), or answers (a).
type peer struct {
	script string
	calls  int
}

func (p *peer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	what := p.script[min(p.calls, len(p.script)-1)]
	p.calls++
	switch what {
	case 'r':
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case 's':
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = theirs.Close() }()
		if what == 'a' {
			_, _ = auth.Accept(theirs, secret, func([]byte) ([]byte, error) { return nil, nil })
		}
	}()
	return ours, nil
}

// TestEnded: how a connection has broken, and how often its port refuses after that, say whether a process has ended. One that lives is
// not taken to have ended, whether it can be reached or not.
func TestEnded(t *testing.T) {
	const anyCalls = -1
	closed, cut := io.EOF, error(syscall.ECONNRESET)
	for _, c := range []struct {
		name   string
		err    error // with which the connection has broken
		script string
		ended  bool
		calls  int
		most   time.Duration
	}{
		{"it has ended", closed, "r", true, 2, 50 * time.Millisecond},
		{"it lives, and connects again", closed, "a", false, 1, 0},
		{"its machine refuses for a moment", closed, "ra", false, 2, 50 * time.Millisecond},
		{"its port closes after the connection", closed, "hhr", true, 4, 150 * time.Millisecond},
		{"it is suspended: its kernel takes calls that nobody answers", closed, "s", false, anyCalls, callLimit},
		{"a port that refuses only now and then", closed, "rh", false, 8, 350 * time.Millisecond},
		{"cut by a firewall, which refuses for a moment", cut, "rrrrrra", false, 7, grace},
		{"cut, and it has ended", cut, "r", true, 7, grace},
		{"cut, and it cannot be reached", cut, "s", false, anyCalls, callLimit},
		{"its machine has vanished", &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}, "s", false, anyCalls, callLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{script: c.script}
			d := &Detector{config: Config{Key: "self", Dial: p.dial}, incoming: make(map[string]int)}
			d.Use(secret)
			d.ctx, d.cancel = context.WithCancel(t.Context())
			defer d.cancel()
			begun := time.Now()
			ended := d.ended(t.Context(), "other", "192.0.2.1:1", c.err)
			if took := time.Since(begun); ended != c.ended || c.calls != anyCalls && p.calls != c.calls || took > c.most {
				t.Errorf("%s: ended: %t, after %d calls and %v; want %t, %d, %v", c.name, ended, p.calls, took, c.ended, c.calls, c.most)
			}
		})
	}
}

// TestEndedUnlessItCalls: who has a connection to this process has not ended, whatever its port does.
func TestEndedUnlessItCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Detector{config: Config{Key: "self", Dial: (&peer{script: "r"}).dial, Changed: func(string, int) {}}, incoming: make(map[string]int)}
		d.Use(secret)
		d.ctx, d.cancel = context.WithCancel(t.Context())
		defer d.cancel()
		time.AfterFunc(graceStep/2, func() { d.count("other", 1) })
		if d.ended(t.Context(), "other", "192.0.2.1:1", io.EOF) {
			t.Error("it is taken to have ended, and has a connection")
		}
	})
}

// A watched connection passes on how it has ended.
type watched struct {
	net.Conn
	ended chan error
}

func (w watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.ended <- err
	}
	return n, err
}

// TestEndIsInGoodOrder: the end of a process closes its connections in good order.
func TestEndIsInGoodOrder(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 10)
	a, b := start(t, "a", func(c *Config) {
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return watched{conn, ended}, err
		}
	}), start(t, "b", nil)
	a.monitor(b)
	b.Close()
	if err := get(t, ended); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ends with %v", err)
	}
}
