package tcpstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/auth"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestClientSaysWhoDoesNotAnswer(t *testing.T) {
	addr := testkit.ReservedAddr(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := tcpstore.Dial(ctx, addr, tcpstore.Config{})
	want := regexp.MustCompile(`^store at ` + regexp.QuoteMeta(addr) + ` does not answer: connection refused \(after \d+ms\)$`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("error %v; want %v", err, want)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v wraps not both of its reasons", err)
	}
	if _, err := tcpstore.Dial(t.Context(), "localhost", tcpstore.Config{}); err == nil || !strings.Contains(err.Error(), "missing port") {
		t.Errorf("an address without a port: %v", err)
	}
}

func TestClientDoesNotWaitForASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tcpstore.Dial(ctx, l.Addr().String(), tcpstore.Config{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("error %v; want one that names the address and wraps the context's", err)
	}
}

func TestClientWaitsForItsServer(t *testing.T) {
	addr := testkit.ReservedAddr(t)
	opened := make(chan error, 1)
	go func() {
		s, err := tcpstore.Dial(t.Context(), addr, tcpstore.Config{Token: []byte("secret")})
		if err == nil {
			err = errors.Join(s.Set(t.Context(), "key", nil), s.Close())
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("without a server: %v", err)
	case <-time.After(20 * time.Millisecond): // some attempts fail, most likely
	}
	server, err := tcpstore.Listen(addr, tcpstore.Config{Token: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestClientRefusedIsFinal(t *testing.T) {
	_, own, err := auth.LoopbackToken()
	if err != nil {
		t.Fatal(err)
	}
	const given = " refused our token: give every rank the same secret in GORUN_TOKEN: wrong token"
	none := " refused this user's own token, from " + own + ": give ranks of several users, or in several containers, the same secret in GORUN_TOKEN: wrong token"
	for _, c := range [][3]string{{"secret", "guess", given}, {"secret", "", none}, {"", "secret", given}} {
		server := listen(t, c[0])
		_, err := tcpstore.Dial(t.Context(), server.Addr(), tcpstore.Config{Token: []byte(c[1])})
		if want := "store at " + server.Addr() + c[2]; err == nil || err.Error() != want {
			t.Errorf("server %q, client %q: %v\nwant: %s", c[0], c[1], err, want)
		}
	}

	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	addr := web.Listener.Addr().String()
	if _, err := tcpstore.Dial(t.Context(), addr, tcpstore.Config{}); !errors.Is(err, auth.ErrNotGorun) || !strings.Contains(err.Error(), addr) {
		t.Errorf("a web server was taken for a store: %v", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = auth.Accept(conn, []byte("secret"), func([]byte) ([]byte, error) { return nil, errors.New("this is rank 3") })
	}()
	want := "store at " + l.Addr().String() + " refused: this is rank 3"
	if _, err := tcpstore.Dial(t.Context(), l.Addr().String(), tcpstore.Config{Token: []byte("secret")}); err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

func TestClientFailsWithItsServer(t *testing.T) {
	server := listen(t, "secret")
	s := dial(t, server, "secret")
	pending := make(chan error, 2)
	go func() { _, err := s.Get(t.Context(), "never"); pending <- err }()
	go func() { pending <- s.Wait(t.Context(), "never", "ever") }()
	if err := s.Set(t.Context(), "key", nil); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	errs := []error{<-pending, <-pending, s.Set(t.Context(), "key", nil)}
	_, err := s.Add(t.Context(), "key", 1)
	for _, err := range append(errs, err) {
		if err == nil || errors.Is(err, store.ErrClosed) || !strings.Contains(err.Error(), "store at "+server.Addr()+" is gone") {
			t.Errorf("without its server a call gives %v; want an error that names the address", err)
		}
	}
}

func TestWaitsThatEndAreForgotten(t *testing.T) {
	s := dial(t, listen(t, "secret"), "secret")
	keys := make([]string, 1<<16+1) // one more than a client may wait for
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	if err := s.Wait(t.Context(), keys...); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Fatalf("Wait for %d keys: %v", len(keys), err)
	}
	for _, keys := range [][]string{keys[1:], {"one more"}} {
		if _, err := s.Add(t.Context(), "count", 1); err != nil { // the server has read all that was sent before
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		var missing *store.MissingKeysError
		if err := s.Wait(ctx, keys...); !errors.As(err, &missing) || len(missing.Keys) != len(keys) {
			t.Errorf("Wait for %d keys: %v", len(keys), err)
		}
		cancel()
	}
}

func TestAClientIsOneConnectionAndLeavesNothing(t *testing.T) {
	server := listen(t, "secret")
	for range 100 {
		s, err := tcpstore.Dial(t.Context(), server.Addr(), tcpstore.Config{Token: []byte("secret")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
