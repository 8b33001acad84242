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

	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/env/keepalive"
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

// TestSilence begins with the first silent call since the last answer. The time of errors of this machine does not count.
func TestSilence(t *testing.T) {
	answer, silent, local := dialError(syscall.ECONNREFUSED), dialError(syscall.EHOSTUNREACH), dialError(syscall.EMFILE)
	start := time.Now()
	var s silence
	for i, c := range []struct {
		err  error
		want int // seconds
	}{
		{local, 0}, {silent, 1}, {silent, 2}, {local, 0}, {silent, 3}, {answer, 0}, {local, 0}, {silent, 1}, {nil, 0}, {silent, 1},
	} { // each call takes a second
		began := start.Add(time.Duration(i) * time.Second)
		before := s
		if got := s.note(c.err, began, began.Add(time.Second)); got != time.Duration(c.want)*time.Second {
			t.Errorf("call %d: %v, want %d s", i, got, c.want)
		}
		if got, want := before.limit(began), map[bool]time.Time{true: began, false: before.since}[before.since.IsZero()].Add(keepalive.Limit); !got.Equal(want) {
			t.Errorf("call %d gives up at %v, want %v", i, got.Sub(start), want.Sub(start))
		}
	}
}
