package acceptor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/transport"

	"github.com/gorun/gorun/comm/internal/shm/stream"
)

// streams are the ends of a stream between two ranks of a world.
func streams(t testing.TB) (here, there transport.Stream) {
	t.Helper()
	d, err := Listen(secret, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	came := make(arrivals, 1)
	d.Serve(Self{World: 7, Rank: 1, Ranks: 2, Here: 2}, came)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mine, err := Self{World: 7, Rank: 0, Ranks: 2, Here: 2}.Dial(ctx, d.Address(), secret, 1)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]transport.Stream{}
	for i, c := range []net.Conn{mine, <-came} {
		s, err := c.(transport.Pollable).Stream()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		})
		ends[i] = s
	}
	return ends[0], ends[1]
}

// arrivals admits everybody and hands streams on.
type arrivals chan net.Conn

func (a arrivals) Admit(int) bool                 { return true }
func (a arrivals) Connected(_ int, conn net.Conn) { a <- conn }

// sleep waits for a doorbell. Only a doorbell that does not ring makes it reach its limit.
func sleep(t testing.TB, s transport.Stream, room bool) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(s.Descriptor()), Events: int16(s.Arm(room))}}
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		if n, err := unix.Poll(fds, 60_000); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
	t.Fatal("nobody rang")
}

// Ends that sleep whenever there is nothing to do are always woken.
func TestSleepersAreWoken(t *testing.T) {
	here, there := streams(t)
	const size = 20 << 20
	sent := make(chan error, 1)
	go func() {
		b := make([]byte, 3*stream.LongestRecord+5)
		for left := size; left > 0; {
			for i := range b {
				b[i] = byte(left)
			}
			rest := b[:min(len(b), left)]
			left -= len(rest)
			for len(rest) > 0 {
				n, err := here.TryWrite([][]byte{rest})
				if err != nil {
					sent <- err
					return
				}
				if rest = rest[n:]; n == 0 {
					sleep(t, here, true)
				}
			}
		}
		sent <- nil
	}()
	b := make([]byte, 100_000)
	for left := size; left > 0; {
		n, err := there.TryRead(b)
		if err != nil {
			t.Fatal(err)
		}
		if left -= n; n == 0 {
			sleep(t, there, false)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// A stream that ends says so once all that came has been read, whether the other side reads, sleeps or writes.
func TestStreamsEnd(t *testing.T) {
	for name, end := range map[string]func(s transport.Stream){
		"closed":    func(s transport.Stream) { _ = s.Close() },
		"shut down": func(s transport.Stream) { s.Shutdown() },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := streams(t)
			if _, err := here.TryWrite([][]byte{[]byte("last "), []byte("words")}); err != nil {
				t.Fatal(err)
			}
			end(here)
			sleep(t, there, false)
			b := make([]byte, 100)
			if n, err := there.TryRead(b); string(b[:n]) != "last words" || err != nil {
				t.Errorf("got %q, %v", b[:n], err)
			}
			for range 1 << 20 {
				if _, err := there.TryRead(b); err != nil {
					break
				}
			}
			if _, err := there.TryRead(b); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want the end", err)
			}
			if _, err := there.TryWrite([][]byte{b}); !errors.Is(err, unix.EPIPE) {
				t.Errorf("writing: got %v", err)
			}
		})
	}
}

// asCaller has the address of the acceptor that the test binary dials when it runs as a process to be killed.
const asCaller = "SHM_TEST_DIAL"

func TestMain(m *testing.M) {
	if address := os.Getenv(asCaller); address != "" {
		conn, err := Self{World: 7, Rank: 0, Ranks: 2, Here: 2}.Dial(context.Background(), address, secret, 1)
		if err == nil {
			_, err = conn.Write([]byte("still alive"))
		}
		if err != nil {
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

func TestAKilledProcessEndsItsStreams(t *testing.T) {
	d, came := listen(t), make(arrivals, 1)
	d.Serve(Self{World: 7, Rank: 1, Ranks: 2, Here: 2}, came)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asCaller+"="+d.Address())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn := <-came
	if conn == nil {
		t.Fatal("no stream")
	}
	defer func() { _ = conn.Close() }()
	b := make([]byte, len("still alive"))
	if _, err := io.ReadFull(conn, b); err != nil || !bytes.Equal(b, []byte("still alive")) {
		t.Errorf("got %q, %v", b, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v, want the end", n, err)
	}
	_ = cmd.Wait()
}
