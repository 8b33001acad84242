package auth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// recorder keeps what was written through it.
type recorder struct {
	net.Conn
	mu  sync.Mutex
	out bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.out.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

func TestReplayedDialerIsRefused(t *testing.T) {
	d, a := pipes["tcp"](t)
	tape := &recorder{Conn: d}
	done := accept(a, token, welcome)
	if _, err := Dial(tape, token, []byte("rank 1")); err != nil {
		t.Fatal(err)
	}
	<-done

	d, a = pipes["tcp"](t)
	done = accept(a, token, func([]byte) ([]byte, error) {
		t.Error("a replayed dialer reached decide")
		return nil, nil
	})
	if _, err := d.Write(tape.out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !errors.Is(got.err, ErrWrongToken) {
		t.Errorf("Accept of a replayed dialer: %v; want ErrWrongToken", got.err)
	}
}

func TestReplayedAcceptorIsRefused(t *testing.T) {
	d, a := pipes["tcp"](t)
	tape := &recorder{Conn: a}
	done := accept(tape, token, welcome)
	if _, err := Dial(d, token, nil); err != nil {
		t.Fatal(err)
	}
	<-done
	if _, err := Dial(&scripted{in: tape.out.Bytes()}, token, nil); !errors.Is(err, ErrWrongToken) {
		t.Errorf("Dial to a replayed acceptor: %v; want ErrWrongToken", err)
	}
}

// A dialer that hears itself must not believe that its echo holds the token.
func TestReflectionIsRefused(t *testing.T) {
	d, a := pipes["tcp"](t)
	go func() {
		_, _ = io.Copy(a, a)
		a.Close()
	}()
	// The hello stands where the acceptor's MAC would, so that the echo is as long as an answer.
	if _, err := Dial(d, token, make([]byte, macSize)); !errors.Is(err, ErrWrongToken) {
		t.Errorf("Dial to its own echo: %v; want ErrWrongToken", err)
	}
	d.Close()
}

// An attacker without the token lets the acceptor's own proof stand for the dialer's.
func TestAcceptorsProofIsNotADialersProof(t *testing.T) {
	d, a := pipes["tcp"](t)
	done := accept(a, token, welcome)
	if _, err := d.Write(opening([]byte("hi"))); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(magic)+nonceSize+macSize)
	if _, err := io.ReadFull(d, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(answer[len(magic)+nonceSize:]); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !errors.Is(got.err, ErrWrongToken) {
		t.Errorf("Accept of its own proof: %v; want ErrWrongToken", got.err)
	}
}

// meddler changes one byte of what passes. The bit that it changes makes the lengths of this test shorter or far
// too long, so that neither end waits for bytes that the other never sends.
type meddler struct {
	net.Conn
	at, seen int
}

func (m *meddler) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if i := m.at - m.seen; i >= 0 && i < len(b) {
		b[i] ^= 2
	}
	m.seen += len(b)
	return m.Conn.Write(b)
}

func TestNoByteCanBeChangedOnTheWay(t *testing.T) {
	const hello = "hi"
	dialerSends := len(opening([]byte(hello))) + macSize
	acceptorSends := len(magic) + nonceSize + macSize + 1 + 2 + len("welcome") + macSize
	for i := range dialerSends + acceptorSends {
		d, a := pipes["tcp"](t)
		dialer, acceptor := net.Conn(&meddler{Conn: d, at: i}), a
		if i >= dialerSends {
			dialer, acceptor = d, &meddler{Conn: a, at: i - dialerSends}
		}
		done := accept(acceptor, token, welcome)
		_, err := Dial(dialer, token, []byte(hello))
		d.Close()
		if got := <-done; err == nil {
			t.Errorf("byte %d changed: the dialer noticed nothing, the acceptor %v", i, got.err)
		}
	}
}

func opening(hello []byte) []byte {
	return appendField(append([]byte(magic), make([]byte, nonceSize)...), hello)
}

func TestStrangers(t *testing.T) {
	lying := append([]byte(magic), make([]byte, nonceSize)...)
	lying = binary.BigEndian.AppendUint16(lying, 65535)
	whole := opening([]byte("hello"))
	cases := map[string]struct {
		in   []byte
		want error
	}{
		"nothing":             {nil, io.EOF},
		"http":                {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ErrNotGorun},
		"tls":                 {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), ErrNotGorun},
		"magic only":          {[]byte(magic), io.EOF},
		"truncated magic":     {[]byte(magic[:5]), io.ErrUnexpectedEOF},
		"truncated nonce":     {whole[:20], io.ErrUnexpectedEOF},
		"truncated hello":     {whole[:len(whole)-1], io.ErrUnexpectedEOF},
		"opening and no more": {whole, io.EOF},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Accept(&scripted{in: c.in}, token, welcome); !errors.Is(err, c.want) {
				t.Errorf("Accept: %v; want %v", err, c.want)
			}
			if _, err := Dial(&scripted{in: c.in}, token, nil); err == nil {
				t.Error("Dial took it for a peer")
			}
		})
	}
	t.Run("lying length", func(t *testing.T) {
		if _, err := Accept(&scripted{in: lying}, token, welcome); err == nil || !strings.Contains(err.Error(), "more than 256 bytes") {
			t.Errorf("Accept: %v; want one that says so", err)
		}
	})
}

// scripted is a connection to an enemy that has written all it will say beforehand.
type scripted struct {
	net.Conn
	in []byte
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error) { return len(b), nil }

func FuzzAccept(f *testing.F) {
	f.Add(opening([]byte("hello")))
	f.Add(append(opening(nil), make([]byte, macSize)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var hello []byte
		var err error
		testkit.AllocatesAtMost(t, 0, func() {
			hello, err = Accept(&scripted{in: in}, token, func([]byte) ([]byte, error) {
				t.Error("hostile bytes reached decide")
				return nil, nil
			})
		})
		if err == nil || hello != nil {
			t.Errorf("Accept = %q, %v", hello, err)
		}
	})
}

func FuzzDial(f *testing.F) {
	f.Add([]byte(magic), []byte("hello"))
	f.Add(append([]byte(magic), make([]byte, nonceSize+macSize+1+2+macSize)...), []byte{})
	f.Fuzz(func(t *testing.T, in, hello []byte) {
		testkit.AllocatesAtMost(t, 0, func() {
			if reply, err := Dial(&scripted{in: in}, token, hello); err == nil || reply != nil {
				t.Errorf("Dial = %q, %v", reply, err)
			}
		})
	})
}
