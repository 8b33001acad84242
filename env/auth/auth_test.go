package auth

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var token = []byte("correct horse battery staple")

func welcome([]byte) ([]byte, error) { return []byte("welcome"), nil }

// pipes lists the kinds of connection that the handshake has to work over.
var pipes = map[string]func(t *testing.T) (dialer, acceptor net.Conn){
	"synchronous": func(t *testing.T) (net.Conn, net.Conn) {
		t.Helper()
		return bounded(t, net.Pipe)
	},
	"tcp": func(t *testing.T) (net.Conn, net.Conn) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return bounded(t, func() (net.Conn, net.Conn) {
			d, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			a, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return d, a
		})
	},
}

// bounded makes a handshake that would hang fail.
func bounded(t *testing.T, make func() (net.Conn, net.Conn)) (net.Conn, net.Conn) {
	t.Helper()
	a, b := make()
	for _, c := range []net.Conn{a, b} {
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

type outcome struct {
	got []byte
	err error
}

// accept runs Accept beside the test and closes the connection when it fails, as callers do.
func accept(conn net.Conn, token []byte, decide func([]byte) ([]byte, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		hello, err := Accept(conn, token, decide)
		if err != nil {
			conn.Close()
		}
		done <- outcome{hello, err}
	}()
	return done
}

func TestHandshake(t *testing.T) {
	long := strings.Repeat("h", MaxHello)
	for name, pipe := range pipes {
		for _, c := range []struct{ token, hello, reply string }{
			{"secret", "rank 3", "rank 0"},
			{"secret", "", ""},
			{"secret", long, long},
			{strings.Repeat("t", 1000), "\x00\xff", "\xff\x00"},
		} {
			t.Run(name, func(t *testing.T) {
				d, a := pipe(t)
				done := accept(a, []byte(c.token), func([]byte) ([]byte, error) { return []byte(c.reply), nil })
				reply, err := Dial(d, []byte(c.token), []byte(c.hello))
				if err != nil || string(reply) != c.reply {
					t.Errorf("Dial = %q, %v; want %q", reply, err, c.reply)
				}
				if got := <-done; got.err != nil || string(got.got) != c.hello {
					t.Errorf("Accept = %q, %v; want %q", got.got, got.err, c.hello)
				}
			})
		}
	}
}

func TestTheConnectionIsCleanAfterwards(t *testing.T) {
	d, a := pipes["tcp"](t)
	done := accept(a, token, welcome)
	if _, err := Dial(d, token, nil); err != nil {
		t.Fatal(err)
	}
	<-done
	if _, err := d.Write([]byte("payload")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 7)
	if _, err := io.ReadFull(a, got); err != nil || string(got) != "payload" {
		t.Errorf("after the handshake the acceptor read %q, %v", got, err)
	}
}

func TestWrongTokenIsToldToBothEnds(t *testing.T) {
	for name, pipe := range pipes {
		t.Run(name, func(t *testing.T) {
			d, a := pipe(t)
			done := accept(a, token, func([]byte) ([]byte, error) {
				t.Error("a dialer with a wrong token reached decide")
				return nil, nil
			})
			if reply, err := Dial(d, []byte("guess"), []byte("hi")); !errors.Is(err, ErrWrongToken) || reply != nil {
				t.Errorf("Dial = %q, %v; want ErrWrongToken", reply, err)
			}
			if got := <-done; !errors.Is(got.err, ErrWrongToken) || got.got != nil {
				t.Errorf("Accept = %q, %v; want ErrWrongToken", got.got, got.err)
			}
		})
	}
}

func TestRefusalIsTold(t *testing.T) {
	for name, pipe := range pipes {
		t.Run(name, func(t *testing.T) {
			for reason, want := range map[string]string{
				"round 7 is over":        "round 7 is over",
				strings.Repeat("é", 150): strings.Repeat("é", 100),
				"":                       "",
			} {
				d, a := pipe(t)
				refusal := errors.New(reason)
				done := accept(a, token, func([]byte) ([]byte, error) { return nil, refusal })
				_, err := Dial(d, token, []byte("hi"))
				var refused *RefusedError
				if !errors.As(err, &refused) || refused.Reason != want {
					t.Errorf("Dial: %v; want a refusal with %q", err, want)
				}
				if got := <-done; !errors.Is(got.err, refusal) || got.got != nil {
					t.Errorf("Accept = %q, %v; want decide's error", got.got, got.err)
				}
			}
		})
	}
}

func TestAnAcceptorThatClosesSaysNothing(t *testing.T) {
	d, a := pipes["tcp"](t)
	done := accept(a, token, func([]byte) ([]byte, error) { return nil, net.ErrClosed })
	_, err := Dial(d, token, nil)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Dial: %v; want the end of the connection", err)
	}
	if got := <-done; !errors.Is(got.err, net.ErrClosed) {
		t.Errorf("Accept: %v; want decide's error", got.err)
	}
}

func TestOversizeHelloAndReply(t *testing.T) {
	big := make([]byte, MaxHello+1)
	d, a := pipes["synchronous"](t)
	if _, err := Dial(d, token, big); err == nil || !strings.Contains(err.Error(), "257 bytes") {
		t.Errorf("Dial with a hello of 257 bytes: %v", err)
	}
	done := accept(a, token, func([]byte) ([]byte, error) { return big, nil })
	var refused *RefusedError
	if _, err := Dial(d, token, nil); !errors.As(err, &refused) {
		t.Errorf("a reply of 257 bytes gave the dialer %v", err)
	}
	if got := <-done; got.err == nil {
		t.Error("a reply of 257 bytes gave the acceptor no error")
	}
}

// TestNoToken: without a token neither end says anything, or believes anybody.
func TestNoToken(t *testing.T) {
	for _, none := range [][]byte{nil, {}} {
		near, far := net.Pipe()
		far.Close() // whoever reads or writes gets another error
		if reply, err := Dial(near, none, nil); !errors.Is(err, ErrNoToken) {
			t.Errorf("Dial: %q, %v", reply, err)
		}
		if hello, err := Accept(near, none, welcome); !errors.Is(err, ErrNoToken) {
			t.Errorf("Accept: %q, %v", hello, err)
		}
		near.Close()
	}
}
