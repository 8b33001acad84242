package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var token = []byte("the token of this test")

// A server lets in who has the token, and echoes.
type server struct {
	*Listener
	log     testkit.Log
	running sync.WaitGroup
}

func serve(t *testing.T, inner net.Listener, c Config) *server {
	t.Helper()
	s := &server{}
	c.Log = s.log.Logger().Info
	s.Listener = Listen(inner, c)
	s.running.Go(func() { s.Serve(&s.running, s.echo) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.running.Wait()
	})
	return s
}

func (s *server) echo(c *Conn) {
	defer func() { _ = c.Close() }()
	if _, err := auth.Accept(c, token, func([]byte) ([]byte, error) {
		if !c.Admit() {
			return nil, net.ErrClosed
		}
		return nil, nil
	}); err != nil {
		c.TurnedAway(err)
		return
	}
	b := make([]byte, 4)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		_, _ = c.Write(b[:n])
	}
}

// local is a listener that accepts silent connections at once: deferAccept does not know its type.
func local(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return struct{ net.Listener }{l}
}

func dial(t *testing.T, s *server) net.Conn {
	t.Helper()
	c, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// member is let in by s, again and again if need be, and makes sure that it has been.
func member(ctx context.Context, s *server) (net.Conn, error) {
	for {
		c, err := Connect(ctx, new(net.Dialer).DialContext, s.Addr().Network(), s.Addr().String())
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
		if _, err = auth.Dial(c, token, []byte("hello")); err == nil && stop() {
			return c, ping(c)
		}
		_ = c.Close()
		if !HungUp(err) {
			return nil, err
		}
	}
}

func ping(c net.Conn) error {
	if _, err := io.WriteString(c, "ping"); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

// An attack is what one connection of a stranger does until it is dropped, and then again, if the stranger is renewing.
type attack struct {
	name  string
	does  func(net.Conn)
	count int
}

// held reads until the server hangs up.
func held(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

var attacks = []attack{
	{"silent", held, 300},
	{"a byte now and then", func(c net.Conn) {
		for _, b := range "gorun1\r\n" + strings.Repeat("n", 1000) {
			if _, err := io.WriteString(c, string(b)); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}, 100},
	{"all but the proof", func(c net.Conn) {
		_, _ = io.WriteString(c, "gorun1\r\n"+strings.Repeat("n", 32)+"\x00\x05hello")
		held(c)
	}, 100},
	{"a wrong proof", func(c net.Conn) { _, _ = auth.Dial(c, []byte("another token"), nil) }, 20},
	{"garbage", func(c net.Conn) { _, _ = c.Write(make([]byte, 1000)); held(c) }, 20},
	{"hangs up", func(net.Conn) {}, 20},
}

// Whatever strangers do, and however often they come back, who has the token gets in, and stays.
func TestStrangersKeepNobodyOut(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, a := range attacks {
			t.Run(network+"/"+a.name, func(t *testing.T) {
				inner := local(t)
				if network == "unix" {
					_ = inner.Close()
					var err error
					if inner, err = net.Listen("unix", filepath.Join(t.TempDir(), "s")); err != nil {
						t.Fatal(err)
					}
				}
				s := serve(t, inner, Config{Limit: 32})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				before, err := member(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				defer before.Close()
				over, stop := context.WithCancel(ctx)
				var strangers sync.WaitGroup
				for i := range a.count {
					strangers.Go(func() {
						d := net.Dialer{}
						if network == "tcp" {
							d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, byte(i), 2)}
						}
						for over.Err() == nil {
							c, err := d.DialContext(over, network, s.Addr().String())
							if err != nil {
								time.Sleep(time.Millisecond) // no room in the kernel's queue
								continue
							}
							done := context.AfterFunc(over, func() { _ = c.Close() })
							a.does(c)
							_ = c.Close()
							done()
						}
					})
				}
				var members sync.WaitGroup
				for range 40 {
					members.Go(func() {
						c, err := member(ctx, s)
						if err != nil {
							t.Errorf("a member is kept out: %v", err)
							return
						}
						_ = c.Close()
					})
				}
				members.Wait()
				s.mu.Lock()
				silent, spoken := s.silent.n, s.spoken.n
				s.mu.Unlock()
				if silent > 32 || spoken > 32 {
					t.Errorf("%d silent ones and %d others are kept, want at most 32", silent, spoken)
				}
				if err := ping(before); err != nil {
					t.Errorf("a member from before was disturbed: %v", err)
				}
				stop()
				strangers.Wait()
				if n := strings.Count(s.log.String(), "\n"); n > kinds {
					t.Errorf("the log has %d lines:\n%s", n, s.log.String())
				}
			})
		}
	}
}

// The time is that of all the handshake: a stranger does not get more by sending a byte now and then.
func TestTimeIsTotal(t *testing.T) {
	s := serve(t, local(t), Config{Time: 200 * time.Millisecond})
	begun := time.Now()
	silent, loris := dial(t, s), dial(t, s)
	go func() {
		for _, b := range "gorun1\r\n" + strings.Repeat("n", 32) {
			if _, err := loris.Write([]byte(string(b))); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for name, c := range map[string]net.Conn{"silent": silent, "slow": loris} {
		_ = c.SetReadDeadline(begun.Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s one is not dropped: %v", name, err)
		}
		if took := time.Since(begun); took < 200*time.Millisecond {
			t.Errorf("the %s one is dropped after %v", name, took)
		}
	}
	if text := s.log.String(); !strings.Contains(text, errLate.Error()) {
		t.Errorf("the log does not say why:\n%s", text)
	}
}

// Admit comes too late for a connection that has been dropped, and a read says why.
func TestTooLate(t *testing.T) {
	l := Listen(local(t), Config{})
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "x")
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got := accepted.(*Conn)
	got.late.Reset(0) // its time is over
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		got.listener.mu.Lock()
		gone := got.in == nil
		got.listener.mu.Unlock()
		if gone {
			break
		}
	}
	if got.Admit() {
		t.Error("a connection was admitted that had been dropped")
	}
	if _, err := got.Read(make([]byte, 2)); !errors.Is(err, errLate) {
		t.Errorf("a read says %v", err)
	}
}

// One that has been admitted may be admitted again, as a server does that is told of every request.
func TestAdmittedTwice(t *testing.T) {
	l := Listen(local(t), Config{})
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "x")
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got := accepted.(*Conn)
	defer got.Close()
	if first, again := got.Admit(), got.Admit(); !first || !again {
		t.Error("a connection was not admitted that is there")
	}
}

// A scarce listener has no descriptors left, for a while.
type scarce struct {
	net.Listener
	left atomic.Int32
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.Listener.Accept()
}

// Accept survives that there are no descriptors, and gets some from those who are silent.
func TestNoDescriptors(t *testing.T) {
	inner := &scarce{Listener: local(t)}
	inner.left.Store(3)
	s := serve(t, inner, Config{})
	silent := dial(t, s)
	first, err := member(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for s.has(0) {
		time.Sleep(time.Millisecond)
	}
	inner.left.Store(1)
	for range 2 { // the first is accepted already
		c, err := member(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	_ = silent.SetReadDeadline(time.Now().Add(5 * time.Second)) // less than it has
	if _, err := silent.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent one is not dropped: %v", err)
	}
}

// has reports whether so many are silent.
func (s *server) has(silent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent.n == silent
}

// Descriptors from the ceiling on are left to others.
func TestDescriptorsAreKeptBack(t *testing.T) {
	if limit, ceiling := bounds(256); limit != 16 || ceiling != 192 {
		t.Errorf("of 256 descriptors %d may be silent, and %d are for connections", limit, ceiling)
	}
	if limit, ceiling := bounds(1 << 20); limit != 512 || ceiling != 1<<20-512 {
		t.Errorf("of 2^20 descriptors %d may be silent, and %d are for connections", limit, ceiling)
	}
	s := serve(t, local(t), Config{})
	silent := dial(t, s)
	for s.has(0) {
		time.Sleep(time.Millisecond)
	}
	s.ceiling.Store(1) // now all are too many
	c := dial(t, s)
	if !isDropped(silent) {
		t.Error("nobody is dropped for one who takes one of the last descriptors")
	}
	_ = c.Close()
	for !s.has(0) {
		time.Sleep(time.Millisecond)
	}
	if c, err := net.Dial("tcp", s.Addr().String()); err == nil && !isDropped(c) { // it may be reset before it is told that it is connected
		t.Error("a connection has one of the last descriptors")
	}
	if text := s.log.String(); !strings.Contains(text, errNoFiles.Error()) {
		t.Errorf("the log does not say why:\n%s", text)
	}
}

func isDropped(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// The log has one line for each kind, then numbers.
func TestTally(t *testing.T) {
	var text testkit.Log
	tally := tally{log: text.Logger().Info}
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}
	for i := range 1000 {
		tally.add(at, &net.OpError{Op: "read", Addr: &net.TCPAddr{Port: i}, Err: errLate})
		tally.add(at, fmt.Errorf("kind %d", i))
	}
	if n := strings.Count(text.String(), "\n"); n != kinds {
		t.Errorf("2000 strangers have %d lines:\n%s", n, text.String())
	}
	tally.close()
	tally.close()
	tally.add(at, errLate)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != kinds+1 || !strings.HasSuffix(lines[kinds], fmt.Sprintf(`msg="turned away more connections" number=%d last=10.0.0.1:5 reason="kind 999"`, 2000-kinds)) {
		t.Errorf("in the end:\n%s", text.String())
	}
}

// Connect waits for room, but not for who refuses.
func TestConnect(t *testing.T) {
	n := 0
	full := func(ctx context.Context, network, address string) (net.Conn, error) {
		if n++; n < 4 {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EAGAIN)}
		} else if n < 6 {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		}
		c, _ := net.Pipe()
		return c, nil
	}
	c, err := Connect(t.Context(), full, "tcp", "x")
	if err != nil || n != 6 {
		t.Fatalf("%d calls, %v", n, err)
	}
	_ = c.Close()
	if _, err := Connect(t.Context(), new(net.Dialer).DialContext, "tcp", testkit.ReservedAddr(t)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, os.ErrDeadlineExceeded
	}
	if _, err := Connect(ctx, never, "tcp", "x"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nobody answers: %v", err)
	}
}
