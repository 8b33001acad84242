package shm

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/auth"
)

var secret = []byte("a secret of 16 bytes and more")

func desk(t testing.TB) *Desk {
	t.Helper()
	d, err := OpenDesk(secret, slog.New(slog.DiscardHandler))
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

func fetch(t *testing.T, d *Desk, token []byte, key uint64) (*Segment, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Fetch(ctx, d.Address(), token, key)
}

func TestDeskHandsSegments(t *testing.T) {
	d := desk(t)
	s, err := Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	s.Bytes()[4999] = 7
	missing := func(when string) {
		t.Helper()
		if _, err := fetch(t, d, secret, 1); err == nil || !strings.Contains(err.Error(), "it is not there, or not any more") {
			t.Errorf("%s: %v", when, err)
		}
	}
	missing("before it is offered")
	d.Offer(1, s)
	if _, err := fetch(t, d, []byte("not the secret of anybody"), 1); !errors.Is(err, auth.ErrWrongToken) {
		t.Errorf("a stranger: %v", err)
	}
	got, err := fetch(t, d, secret, 1)
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
	d.Withdraw(1)
	missing("after it has been withdrawn")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDeskThatCloses(t *testing.T) {
	d := desk(t)
	c, err := net.Dial("unix", d.Address()) // and says nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a closed desk has said something")
	}
	_ = c.Close()
	if _, err := fetch(t, d, secret, 1); err == nil {
		t.Error("a closed desk has handed out something")
	}
}

// A desk that hangs up on everybody is called a few times, not all the time.
func TestAFullDeskIsCalledRarely(t *testing.T) {
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
	if _, err := Fetch(ctx, ln.Addr().String(), secret, 1); err == nil {
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

// A segment cannot be made shorter by whoever has it, and what could be is not taken for one.
func TestSegmentsKeepTheirSize(t *testing.T) {
	s, err := Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(s.fd, 100); err == nil {
		t.Error("a segment has been cut")
	}
	if _, err := open(dup(t, s.fd), 6000); err == nil || !strings.Contains(err.Error(), "has 5000 bytes: want 6000") {
		t.Errorf("a segment that is too short: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	loose, err := unix.MemfdCreate("loose", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(loose, 0); err == nil || !strings.Contains(err.Error(), "its size could be changed") {
		t.Errorf("a file that can be cut: %v", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(dup(t, int(file.Fd())), 0); err == nil {
		t.Error("a plain file has been taken for a segment")
	}
	_ = file.Close()
}

func dup(t testing.TB, fd int) int {
	t.Helper()
	fd, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
