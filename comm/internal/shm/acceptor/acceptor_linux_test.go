package acceptor

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/env/auth"
)

var secret = []byte("a secret of 16 bytes and more")

func listen(t testing.TB) *Acceptor {
	t.Helper()
	d, err := Listen(secret, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func attach(t *testing.T, d *Acceptor, token []byte, key uint64) (*segment.Segment, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Attach(ctx, d.Address(), token, key)
}

func TestSegmentsAreAttached(t *testing.T) {
	d := listen(t)
	s, err := segment.Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	s.Bytes()[4999] = 7
	missing := func(when string) {
		t.Helper()
		if _, err := attach(t, d, secret, 1); err == nil || !strings.Contains(err.Error(), "it is not there, or not any more") {
			t.Errorf("%s: %v", when, err)
		}
	}
	missing("before it is exported")
	d.Export(1, s)
	if _, err := attach(t, d, []byte("not the secret of anybody"), 1); !errors.Is(err, auth.ErrWrongToken) {
		t.Errorf("a stranger: %v", err)
	}
	got, err := attach(t, d, secret, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Bytes()) != 5000 || got.Bytes()[4999] != 7 {
		t.Error("got other memory")
	}
	got.Bytes()[0] = 9
	if err := got.Close(); err != nil {
		t.Error(err)
	}
	if s.Bytes()[0] != 9 {
		t.Error("what the other has written is not there")
	}
	d.Remove(1)
	missing("after it has been removed")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedAcceptor(t *testing.T) {
	d := listen(t)
	c, err := net.Dial("unix", d.Address()) // and says nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a closed acceptor has said something")
	}
	_ = c.Close()
	if _, err := attach(t, d, secret, 1); err == nil {
		t.Error("a closed acceptor has handed out something")
	}
}

// Callers try an acceptor that hangs up on everybody a few times, not all the time.
func TestAFullAcceptorIsDialledRarely(t *testing.T) {
	ln, err := net.Listen("unix", "@gorun-test-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Attach(ctx, ln.Addr().String(), secret, 1); err == nil {
		t.Error("it has handed out something")
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	serving.Wait()
	if n := calls.Load(); n < 2 || n > 20 {
		t.Errorf("%d calls in half a second", n)
	}
}
