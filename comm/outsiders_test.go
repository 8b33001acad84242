package comm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/env/auth"
)

// Outsiders knock while the group computes: a port scanner, somebody who says nothing, a worker of an earlier round,
// one without the token. They are turned away, which is logged once for each kind, and the group goes on.
func TestOutsidersDisturbNobody(t *testing.T) {
	const size = 3
	log := &lines{}
	token := []byte("the secret of this round")
	trs := overTCP(t, size, tcp.Config{Token: token, Log: slog.New(slog.NewTextHandler(log, nil))})
	at := trs[0].(*tcp.Transport).Addr().String()
	w := newTestWorld(t, trs)
	defer w.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, say := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01", ""} {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, say)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
		for _, outsider := range []tcp.Config{
			{World: 0, Rank: 2, Token: token}, {World: 1, Rank: 2, Token: []byte("of an earlier round")},
		} {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Error(err)
				return
			}
			outsider.Peers = []string{at, at, at}
			old := tcp.New(ln, outsider)
			_, err = old.Dial(t.Context(), 0)
			var refused *auth.RefusedError
			if !errors.As(err, &refused) && !errors.Is(err, auth.ErrWrongToken) {
				t.Errorf("an outsider got %v", err)
			}
			_ = old.Close()
		}
	}()
	w.run(func(ctx context.Context, g *Group) error {
		for rounds := 0; ; rounds++ {
			v := []int{1}
			select {
			case <-done:
				v[0] = 0 // no longer all ones: everybody stops
			default:
			}
			if err := AllReduce(ctx, g, v, Min); err != nil {
				return err
			}
			if v[0] == 0 {
				return nil
			}
		}
	})
	for begun := time.Now(); len(log.with("turned away")) < 3 && time.Since(begun) < time.Minute; { // the last one may know first
		time.Sleep(time.Millisecond)
	}
	if got := log.with("turned away"); len(got) != 3 {
		t.Errorf("%d kinds of outsiders were logged, want 3: %q", len(got), got)
	}
}

// A stream of TLS goes on after a read that was interrupted.
func TestACancelledReceiveOverTLS(t *testing.T) {
	w := newTestWorld(t, transports["tls"](t, 2))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		if g.Rank() == 0 {
			return errors.Join(Barrier(ctx, g), Send(ctx, g, bytes.Repeat([]byte("x"), 1<<20), 1))
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := Recv(short, g, []int{0}, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		got := make([]byte, 1<<20)
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		if _, err := Recv(ctx, g, got, 0); err != nil || strings.Trim(string(got), "x") != "" {
			t.Errorf("got other bytes, %v", err)
		}
		return nil
	})
}

// TestGuessableTokens: where others can see what is made of a token, one that can be guessed is refused.
func TestGuessableTokens(t *testing.T) {
	exposed := map[string]Option{"meeting place": WithInitMethod("tcp://192.0.2.1:29500")}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			exposed["rank"] = WithAddress(netip.MustParseAddr(n.IP.String()))
		}
	}
	for what, option := range exposed {
		for _, token := range []string{"zulu", strings.Repeat("zulu", 16)} {
			_, err := Init(t.Context(), WithStore(NewMemStore()), option, WithRank(0, 2), WithToken(token), WithTimeout(time.Second))
			if !isArgument(err) || !strings.Contains(err.Error(), "could be guessed") || strings.Contains(err.Error(), token) {
				t.Errorf("token %q, and others can reach the %s: %v", token, what, err)
			}
		}
	}
}

func isArgument(err error) bool {
	_, ok := errors.AsType[*ArgumentError](err)
	return ok
}
