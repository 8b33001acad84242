package embedded

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

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
