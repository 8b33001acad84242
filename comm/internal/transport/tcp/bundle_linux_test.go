package tcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
	"github.com/gorun/gorun/comm/internal/transport"
)

// bundleStreams are both ends of a bundle that is polled.
func bundleStreams(t *testing.T, connections, stripe int) [2]transport.Stream {
	return polled(t, connections, stripe, nil)
}

// polled are both ends of a stream that is polled.
func polled(t *testing.T, connections, stripe int, tweak func(rank int, cfg *Config)) [2]transport.Stream {
	trs := bundled(t, 2, connections, stripe, tweak)
	t.Cleanup(func() { closeAll(t, trs) })
	a, b := connected(t, trs)
	var ends [2]transport.Stream
	var err error
	if ends[0], err = a.(transport.Pollable).Stream(); err == nil {
		ends[1], err = b.(transport.Pollable).Stream()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ends[0].Close(), ends[1].Close() })
	return ends
}

// A waiter waits for a stream as the endpoint does: what has woken it leaves the set.
type waiter struct {
	t     *testing.T
	s     transport.Stream
	set   *epoll.Set
	armed bool
}

func newWaiter(t *testing.T, s transport.Stream) *waiter {
	set, err := epoll.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return &waiter{t: t, s: s, set: set}
}

func (w *waiter) arm(room bool) {
	set := w.set.Add
	if w.armed {
		set = w.set.Change
	}
	if err := set(w.s.Descriptor(), 1, w.s.Arm(room)); err != nil {
		w.t.Error(err)
	}
	w.armed = true
}

func (w *waiter) wait() {
	if !w.armed {
		w.arm(false)
	}
	w.armed = false
	if ready, err := w.set.Wait(); err != nil || len(ready) != 1 {
		w.t.Errorf("got %v, %v", ready, err)
	}
	if err := w.set.Remove(w.s.Descriptor()); err != nil {
		w.t.Error(err)
	}
}

// Whatever has been read and written between, who waits is woken when there is something to read or room.
func TestStreamsWake(t *testing.T) {
	t.Parallel()
	tls := far(t)
	for _, c := range []struct {
		connections, stripe, length int
		tweak                       func(rank int, cfg *Config)
	}{
		{2, 10, 20_000, nil}, {4, 1000, 1 << 20, nil}, {3, stripe, 32 << 20, nil},
		{1, stripe, 32 << 20, tls}, {1, 10, 20_000, tls}, {3, 1000, 1 << 20, tls}, {3, stripe, 32 << 20, tls},
	} {
		s := polled(t, c.connections, c.stripe, c.tweak)
		sent := make([]byte, c.length)
		_, _ = rand.NewChaCha8([32]byte{1}).Read(sent)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w := newWaiter(t, s[0])
			for rest := sent; len(rest) > 0; {
				cut := rand.IntN(min(len(rest), 3*c.stripe) + 1)
				n, err := s[0].TryWrite([][]byte{rest[:cut/2], nil, rest[cut/2 : cut]})
				if err != nil {
					t.Error(err)
					return
				}
				if rest = rest[n:]; n < cut {
					w.arm(true)
					w.wait()
				}
			}
		}()
		got, part := []byte{}, make([]byte, 2*c.stripe)
		w := newWaiter(t, s[1])
		for len(got) < len(sent) {
			n, err := s[1].TryRead(part[:1+rand.IntN(len(part))])
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, part[:n]...); n == 0 {
				w.wait()
			}
		}
		<-done
		if !bytes.Equal(got, sent) {
			t.Error("other bytes than were sent")
		}
	}
}

// One that has been armed tells of what comes after bytes that have been read meanwhile.
func TestAnArmedBundleFollowsItsTurns(t *testing.T) {
	s := bundleStreams(t, 2, 4)
	w := newWaiter(t, s[1])
	w.arm(false)
	part := make([]byte, 100)
	read := func(want string) {
		for len(want) > 0 {
			n, err := s[1].TryRead(part)
			if err != nil || string(part[:n]) != want[:n] {
				t.Fatalf("got %q, %v, want %q", part[:n], err, want)
			}
			if want = want[n:]; n == 0 {
				runtime.Gosched()
			}
		}
	}
	for _, text := range []string{"abcdef", "ghi", "jklmnop"} {
		if _, err := s[0].TryWrite([][]byte{[]byte(text)}); err != nil {
			t.Fatal(err)
		}
		read(text)
	}
	go func() { _, _ = s[0].TryWrite([][]byte{[]byte("q")}) }()
	for n := 0; n == 0; n, _ = s[1].TryRead(part) {
		w.wait()
	}
}

// A connection that is lost before its turn wakes nobody: only when it is its turn the stream has ended.
func TestALostConnectionDoesNotSpin(t *testing.T) {
	s := bundleStreams(t, 3, 4)
	s[0].(*bundleStream).conns[1].Shutdown()
	s[1].(*bundleStream).conns[1].Shutdown()
	var few epoll.Few
	few.Add(s[1].Descriptor(), 1, s[1].Arm(true))
	part := make([]byte, 10)
	if ready := few.Wait(time.Minute); len(ready) != 1 { // there is room
		t.Error("not woken")
	}
	few.Clear()
	few.Add(s[1].Descriptor(), 1, s[1].Arm(false))
	if ready := few.Wait(time.Millisecond); len(ready) > 0 {
		t.Error("woken by a connection whose turn it is not")
	}
	if n, err := s[0].TryWrite([][]byte{[]byte("abcd"), []byte("efgh")}); n != 4 || err == nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	for read := 0; ; {
		few.Clear()
		few.Add(s[1].Descriptor(), 1, s[1].Arm(false))
		if ready := few.Wait(time.Minute); len(ready) != 1 {
			t.Fatal("not woken")
		}
		n, err := s[1].TryRead(part)
		if read += n; err != nil {
			if !errors.Is(err, io.EOF) || read != 4 {
				t.Errorf("read %d, %v", read, err)
			}
			break
		}
	}
	s[1].Shutdown()
	if n, err := s[1].TryRead(part); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
}
