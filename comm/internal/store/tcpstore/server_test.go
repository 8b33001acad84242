package tcpstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/auth"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestListenWantsATokenOnTheNetwork(t *testing.T) {
	const want = "store: 10.0.0.5:29500 can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN"
	if _, err := tcpstore.Listen("10.0.0.5:29500", tcpstore.Config{}); err == nil || err.Error() != want {
		t.Errorf("Listen: %v\nwant: %s", err, want)
	}
	for addr, refused := range map[string]bool{":0": true, "0.0.0.0:0": true, "[::]:0": true, "127.0.0.1:0": false, "localhost:0": false} {
		server, err := tcpstore.Listen(addr, tcpstore.Config{})
		if (err != nil) != refused {
			t.Errorf("Listen(%q) without a token: %v; want it refused: %v", addr, err, refused)
		}
		if err == nil {
			server.Close()
		}
	}
	const guessable = "store: :0 can be reached from the network: the token has 4 bytes and could be guessed: want at least 16, such as the output of openssl rand -hex 32"
	if _, err := tcpstore.Listen(":0", tcpstore.Config{Token: []byte("zulu")}); err == nil || err.Error() != guessable {
		t.Errorf("Listen: %v\nwant: %s", err, guessable)
	}
	server, err := tcpstore.Listen(":0", tcpstore.Config{Token: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatalf("Listen on all addresses with a token: %v", err)
	}
	if err := errors.Join(server.Close(), server.Close()); err != nil {
		t.Error(err)
	}
}

// A remoteListener makes every connection look as if it came from another machine.
type remoteListener struct{ net.Listener }

type remoteConn struct{ net.Conn }

func (l remoteListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return remoteConn{conn}, err
}

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4711} }

func TestServeWithoutATokenServesThisMachineOnly(t *testing.T) {
	token, _, err := auth.LoopbackToken()
	if err != nil {
		t.Fatal(err)
	}
	for _, far := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if far {
			l = remoteListener{l}
		}
		server := tcpstore.Serve(l, tcpstore.Config{})
		t.Cleanup(func() { _ = server.Close() })
		conn, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := auth.Dial(conn, []byte(token), []byte("gorun store 1")); (err != nil) != far {
			t.Errorf("from another machine: %t; got %v", far, err)
		}
	}
}

// A client without a token does not trust a server on the network.
func TestClientWithoutATokenStaysOnThisMachine(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		server, err := tcpstore.Listen(net.JoinHostPort(n.IP.String(), "0"), tcpstore.Config{Token: []byte("0123456789abcdef")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		_, err = tcpstore.Dial(t.Context(), server.Addr(), tcpstore.Config{})
		want := "store at " + server.Addr() + ": it is on the network and there is no token: give every rank the same secret in GORUN_TOKEN"
		if err == nil || err.Error() != want || !errors.Is(err, auth.ErrNoToken) {
			t.Errorf("Dial: %v\nwant: %s", err, want)
		}
		return
	}
	t.Skip("this machine has no address but loopback")
}

// rawConn is a connection to the server without a handshake.
func rawConn(t *testing.T, server *tcpstore.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// authenticated is a connection to the server after the handshake.
func authenticated(t *testing.T, server *tcpstore.Server) net.Conn {
	t.Helper()
	conn := rawConn(t, server)
	if _, err := auth.Dial(conn, []byte("secret"), []byte("gorun store 1")); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestStrangersAreTurnedAwayAndDisturbNobody(t *testing.T) {
	log := &testkit.Log{}
	server, err := tcpstore.Listen("127.0.0.1:0", tcpstore.Config{Token: []byte("secret"), Log: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var counts [3]int64
	for i := range counts {
		s := dial(t, server, "secret")
		work.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Add(t.Context(), "sum", 1); err != nil {
					t.Errorf("a real client was disturbed: %v", err)
					return
				}
				counts[i]++
			}
		})
	}
	garbage := strings.Repeat("\xde\xad\xbe\xef", 1<<10)
	for name, stranger := range map[string]struct {
		connect func(*testing.T, *tcpstore.Server) net.Conn
		says    string
	}{
		"a web browser":       {rawConn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"tls":                 {rawConn, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		"garbage":             {rawConn, garbage},
		"a hello of 64 KiB":   {rawConn, "gorun1\r\n" + strings.Repeat("n", 32) + "\xff\xff" + garbage},
		"a guess":             {rawConn, "gorun1\r\n" + strings.Repeat("n", 32) + "\x00\x00" + strings.Repeat("g", 32)},
		"a frame of 4 GiB":    {authenticated, "\xff\xff\xff\xff" + garbage},
		"an unknown request":  {authenticated, "\x00\x00\x00\x09\xff12345678"},
		"an empty frame":      {authenticated, "\x00\x00\x00\x00"},
		"a request cut short": {authenticated, "\x00\x00\x00\x0b\x0212345678\x00\x05"},
	} {
		conn := stranger.connect(t, server)
		_, _ = io.WriteString(conn, stranger.says) // the server may close the connection in the middle
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s was not disconnected", name)
		}
	}
	for range 20 {
		rawConn(t, server).Close() // a port scanner
		rawConn(t, server)         // says nothing
	}
	watcher := dial(t, server, "secret")
	for sum, more := int64(0), int64(0); more == 0 || sum < more; { // the clients still get on
		var err error
		if sum, err = watcher.Add(t.Context(), "sum", 0); err != nil {
			t.Fatal(err)
		}
		if more == 0 {
			more = sum + 100
		}
	}
	cancel()
	work.Wait()
	want := counts[0] + counts[1] + counts[2]
	if sum, err := watcher.Add(t.Context(), "sum", 0); err != nil || sum != want {
		t.Errorf("the real clients have counted to %d, the store to %d, %v", want, sum, err)
	}
	if n := strings.Count(log.String(), "turned away a connection"); n != 3 { // no gorun, a field that is too long, a wrong token
		t.Errorf("the log speaks of %d kinds of strangers; want 3:\n%s", n, log)
	}
}

func TestSilentConnectionsCannotKeepOthersOut(t *testing.T) {
	server := listen(t, "secret")
	for range 1500 { // more than may shake hands at once
		rawConn(t, server)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // the silent ones have more
	defer cancel()
	s, err := tcpstore.Dial(ctx, server.Addr(), tcpstore.Config{Token: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Set(ctx, "key", nil), s.Close()); err != nil {
		t.Error(err)
	}
}

// request is a frame as a client would send it.
func request(kind byte, id uint64, rest string) string {
	body := string(kind) + fmt.Sprintf("%08d", id) + rest
	if kind > 0x7f {
		panic("not one byte")
	}
	n := len(body)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + body
}

func TestAClientThatReadsNothingIsDisconnected(t *testing.T) {
	server := listen(t, "secret")
	good, bad := dial(t, server, "secret"), authenticated(t, server)
	for id := range uint64(20) { // 20 times 16 MiB is more than the server keeps for one client
		if _, err := io.WriteString(bad, request(2, id, "\x00\x03big")); err != nil {
			t.Fatal(err)
		}
	}
	// The server handles this request after those.
	if _, err := io.WriteString(bad, request(1, 99, "\x00\x04sign")); err != nil {
		t.Fatal(err)
	}
	if _, err := good.Get(t.Context(), "sign"); err != nil {
		t.Fatal(err)
	}
	if err := good.Set(t.Context(), "big", make([]byte, store.MaxValue)); err != nil {
		t.Fatal(err)
	}
	if n, err := good.Add(t.Context(), "count", 1); err != nil || n != 1 {
		t.Errorf("beside a client that reads nothing, Add = %d, %v", n, err)
	}
	if n, _ := io.Copy(io.Discard, bad); n >= 20*store.MaxValue {
		t.Errorf("the server kept all of %d bytes for a client that took none", n)
	}
}

func TestAClientThatAsksForMuchGetsItAll(t *testing.T) {
	server := listen(t, "secret")
	s := dial(t, server, "secret")
	const size, times = 4 << 20, 80 // more than the server keeps for one client
	if err := s.Set(t.Context(), "big", make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	bulk := authenticated(t, server)
	go func() {
		for id := range uint64(times) {
			if _, err := io.WriteString(bulk, request(2, id, "\x00\x03big")); err != nil {
				t.Errorf("asking: %v", err)
			}
		}
	}()
	if n, err := io.CopyN(io.Discard, bulk, times*(size+13)); err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
}

// Rank 0 closes the server as soon as all ranks have come. The last one must still get its reply.
func TestCloseOfTheServerSendsRepliesFirst(t *testing.T) {
	for range 4 {
		server := listen(t, "secret")
		first, last := dial(t, server, "secret"), dial(t, server, "secret")
		came := make(chan error, 1)
		go func() { // the answer is long, so that it is still being sent
			_, err := last.CompareAndSwap(t.Context(), "last", nil, make([]byte, store.MaxValue))
			came <- err
		}()
		if err := first.Wait(t.Context(), "last"); err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-came; err != nil {
			t.Fatalf("the write that the other saw: %v", err)
		}
	}
}

// On a machine with much else to do, a client takes longer than a second for its reply.
func TestCloseWaitsForASlowClient(t *testing.T) {
	t.Parallel()
	server := listen(t, "secret")
	good, slow := dial(t, server, "secret"), authenticated(t, server)
	if err := good.Set(t.Context(), "big", make([]byte, store.MaxValue)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(slow, request(2, 1, "\x00\x03big")); err != nil {
		t.Fatal(err)
	}
	const size = store.MaxValue + 13 // more than sockets hold
	if _, err := io.CopyN(io.Discard, slow, 1); err != nil {
		t.Fatal(err)
	}
	taken := make(chan int64, 1)
	go func() {
		for total := int64(1); ; {
			n, err := io.CopyN(io.Discard, slow, 1<<20)
			if total += n; err != nil {
				taken <- total
				return
			}
			time.Sleep(time.Second / 4)
		}
	}()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-taken; got != size {
		t.Errorf("a slow client got %d of %d bytes", got, size)
	}
}
