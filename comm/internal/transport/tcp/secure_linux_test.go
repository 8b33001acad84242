package tcp

import (
	"bytes"
	"testing"
)

// What a write has not taken can be another's from then on, but for the rest of a slice that has begun. So where the
// last byte of a record counts as not written, its slice must have begun.
func TestARecordDoesNotEndWithTheFirstByteOfASlice(t *testing.T) {
	s := &secureStream{}
	of := func(lengths ...int) (v [][]byte) {
		for _, n := range lengths {
			v = append(v, make([]byte, n))
		}
		return v
	}
	for _, c := range []struct {
		v          [][]byte
		skip, want int
	}{
		{of(recordLength-1, 64), 0, recordLength - 1},
		{of(recordLength-1, 64), recordLength - 1, 64},
		{of(recordLength-2, 64), 0, recordLength},
		{of(recordLength, 64), 0, recordLength},
		{of(recordLength-1, 1, 64), 0, recordLength}, // a slice that is done
		{of(5, recordLength), 5, recordLength},
		{of(5, recordLength+5), 6, recordLength},
		{of(64, 2*recordLength), 0, recordLength},
		{of(64, 8), 64 + 8, 0},
		{of(64, 0, 8), 3, 69},
	} {
		if got := len(s.nextRecord(c.v, c.skip)); got != c.want {
			t.Errorf("after %d bytes of %d slices: a record of %d bytes, want %d", c.skip, len(c.v), got, c.want)
		}
	}
}

// What TLS has taken from the stream below, and nobody has read, wakes who waits: that stream is not ready for it.
func TestWhatHasBeenDecryptedWakes(t *testing.T) {
	s := polled(t, 1, stripe, far(t))
	if n, err := s[1].TryRead(make([]byte, 1)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := s[0].TryWrite([][]byte{bytes.Repeat([]byte("x"), 1000)}); err != nil {
		t.Fatal(err)
	}
	w := newWaiter(t, s[1])
	one, read := make([]byte, 1), 0
	for read < 1000 {
		n, err := s[1].TryRead(one)
		if err != nil {
			t.Fatal(err)
		}
		if read += n; n == 0 || read%10 == 0 && read < 1000 {
			w.wait()
		}
	}
}

// What TLS writes by itself, as it does when it is asked for new keys, goes though nobody writes.
func TestWhatTLSSaysByItselfIsWritten(t *testing.T) {
	s := polled(t, 1, stripe, far(t))
	w := s[0].(*secureStream)
	if _, err := w.tls.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if w.Arm(false); len(w.wire.out) == 0 {
		t.Fatal("it has been written already")
	}
	waits := newWaiter(t, s[0])
	waits.wait() // for room
	if n, err := s[0].TryRead(make([]byte, 1)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	got := make([]byte, 4)
	for n := 0; n == 0; {
		var err error
		if n, err = s[1].TryRead(got); err != nil {
			t.Fatal(err)
		}
	}
	if string(got[:3]) != "abc" {
		t.Errorf("got %q", got)
	}
}
