package tcpstore

import (
	"context"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// When their hosts lose each other, server and client notice, whether the client waits for a reply or sends a request.
func TestTheOtherHostVanishes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := hosttest.New(t, 2)
	token := []byte("a secret that nobody guesses, of some length")
	var server *Server
	var clients [2]*Client
	var err error
	w.Host(0).Do(func() { server, err = Listen(w.Host(0).Addr+":0", Config{Token: token}) })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for i := range clients {
		w.Host(1).Do(func() { clients[i], err = Dial(ctx, server.Addr(), Config{Token: token}) })
		if err != nil {
			t.Fatal(err)
		}
	}
	errs := make(chan error, len(clients))
	go func() {
		_, err := clients[0].Get(ctx, "never set")
		errs <- err
	}()
	time.Sleep(time.Second) // so that it waits
	w.Cut(1)
	cut := time.Now()
	go func() { errs <- clients[1].Set(ctx, "key", make([]byte, 1<<20)) }()
	for range clients {
		err := <-errs
		t.Logf("after %v: %v", time.Since(cut), err)
		if took := time.Since(cut); err == nil || took > 45*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	}
	for {
		server.mu.Lock()
		left := len(server.conns)
		server.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Since(cut) > 60*time.Second {
			t.Fatalf("%d clients are there still", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range clients {
		_ = c.Close()
	}
}
