package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/network"
)

// dialError is what a call ends with that the system refuses.
func dialError(err error) error {
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		err             error
		answers, silent bool
	}{
		{nil, true, false},
		{dialError(syscall.ECONNREFUSED), true, false},
		{dialError(syscall.ECONNRESET), true, false},
		{transport.ErrCrossed, true, false},
		{fmt.Errorf("handshake: %w", &net.OpError{Op: "read", Err: io.EOF}), true, false},
		{dialError(syscall.EHOSTUNREACH), false, true},
		{dialError(syscall.ENETUNREACH), false, true},
		{dialError(syscall.EHOSTDOWN), false, true},
		{dialError(syscall.ETIMEDOUT), false, true},
		{errors.Join(dialError(syscall.EHOSTUNREACH), nil), false, true},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, false, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}}, false, false},
		{dialError(syscall.EMFILE), false, false},
		{dialError(syscall.EACCES), false, false},
		{dialError(syscall.EADDRNOTAVAIL), false, false},
	} {
		if got := answers(c.err); got != c.answers {
			t.Errorf("%v answers: %t", c.err, got)
		}
		if got := isSilent(c.err); got != c.silent {
			t.Errorf("%v is silent: %t", c.err, got)
		}
	}
}

// TestSilence: a silence begins with the first silent call since the last answer. The time of errors of this machine
// does not count.
func TestSilence(t *testing.T) {
	answer, silent, local := dialError(syscall.ECONNREFUSED), dialError(syscall.EHOSTUNREACH), dialError(syscall.EMFILE)
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	var s silence
	for second, c := range []struct { // a call in each second
		err   error
		lasts int // how many seconds the silence lasts after it
		from  int // the second that keepalive.Limit counts from
	}{
		{local, 0, 0}, {silent, 1, 1}, {silent, 2, 1}, {local, 0, 1}, {silent, 3, 2}, {answer, 0, 2},
		{local, 0, 6}, {silent, 1, 7}, {nil, 0, 7}, {silent, 1, 9},
	} {
		if got := s.limit(at(second)); !got.Equal(at(c.from).Add(network.KeepAliveLimit)) {
			t.Errorf("call %d gives up after %v", second, got.Sub(start))
		}
		if got := s.note(c.err, at(second), at(second+1)); got != time.Duration(c.lasts)*time.Second {
			t.Errorf("call %d: it lasts %v, want %d s", second, got, c.lasts)
		}
	}
}
