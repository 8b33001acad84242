package auth

import (
	"errors"
	"net"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"rank 1: é × 界":           "rank 1: é × 界",
		"\x1b[2Jgone\r\nnext\x00": "\uFFFD[2Jgone  next\uFFFD",
		"right\u202eleft\x9b\xff": "right\uFFFDleft\uFFFD\uFFFD",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestRefusalIsPrintable: what an acceptor says cannot write to the terminal of whoever it refuses.
func TestRefusalIsPrintable(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	token := []byte("0123456789abcdef")
	go func() {
		_, _ = Accept(b, token, func([]byte) ([]byte, error) { return nil, errors.New("\x1b]0;no\a") })
	}()
	_, err := Dial(a, token, []byte("hello"))
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || refused.Reason != "\uFFFD]0;no\uFFFD" {
		t.Errorf("Dial: %q", err)
	}
}
