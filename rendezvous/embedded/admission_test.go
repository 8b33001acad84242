package embedded

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// A member's connection carries one request after the other: each of them proves again what is known.
func TestMembersKeepTheirConnections(t *testing.T) {
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ConnState: admitMember, Handler: http.NotFoundHandler()}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(&timedListener{admission.Listen(bound, admission.Config{}), time.Minute, time.Minute})
	}()
	transport := new(http.Transport)
	reused := false
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	for i := range 3 {
		request, err := http.NewRequestWithContext(trace, http.MethodPost, "http://"+bound.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if reused != (i > 0) {
			t.Errorf("request %d: connection reused: %v", i, reused)
		}
	}
	transport.CloseIdleConnections()
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestSpareConnection: a member that has dialed one more connection than it needs is no stranger, however late it uses that. A stranger that
// begins the handshake still has to go.
func TestSpareConnection(t *testing.T) {
	own, err := auth.NewIdentity(secret, realm)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var turnedAway []any // the addresses
	limits := admission.Config{Time: time.Second, Log: func(_ string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		turnedAway = append(turnedAway, args[1])
	}}
	server := &http.Server{ConnState: admitMember, Handler: http.NotFoundHandler()}
	served := make(chan error, 1)
	go func() { served <- server.Serve(memberListener(admission.Listen(bound, limits), own.ServerTLS())) }()
	defer func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	spare, err := tls.Dial("tcp", bound.Addr().String(), clientTLS(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	stranger, err := net.Dial("tcp", bound.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Write([]byte{22}); err != nil { // the first byte of a handshake
		t.Fatal(err)
	}
	if _, err := stranger.Read(make([]byte, 1)); !admission.HungUp(err) { // its time is over, and so would be that of the spare one
		t.Fatalf("the stranger: %v", err)
	}
	if _, err := io.WriteString(spare, "GET / HTTP/1.1\r\nHost: member\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(spare).ReadString('\n'); !strings.HasPrefix(said, "HTTP/1.1 404") {
		t.Errorf("a late request gets %q, %v", said, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(turnedAway) != 1 || turnedAway[0] != stranger.LocalAddr().String() {
		t.Errorf("turned away: %v, want only %v", turnedAway, stranger.LocalAddr())
	}
}
