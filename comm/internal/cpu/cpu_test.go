package cpu

import (
	"bytes"
	"testing"
	"time"
)

func TestStamps(t *testing.T) {
	before := time.Now()
	s := Now()
	time.Sleep(20 * time.Millisecond)
	if off := s.Time().Sub(before); off < -time.Millisecond || off > time.Second {
		t.Errorf("a stamp is %v after the time before it", off)
	}
	if later := Now(); later <= s {
		t.Errorf("stamp %d after %d", later, s)
	}
}

func TestAwait(t *testing.T) {
	word := uint64(3)
	if v := Await(&word, 4, 10); v != 3 {
		t.Errorf("got %d, want 3", v)
	}
	if v := Await(&word, ^uint64(0), 10); v != 3 {
		t.Errorf("numbers that go on from 0: got %d, want 3", v)
	}
	word = 1<<63 + 5
	if Reached(word, 5) || !Reached(word, 6) || !Reached(4, word) {
		t.Error("the half of all numbers that has been reached is another one")
	}
	word = 3
	go StoreRelease(&word, 1<<40)
	for Await(&word, 4, 10) == 3 {
	}
	if v := Await(&word, 4, 10); v != 1<<40 {
		t.Errorf("got %d", v)
	}
}

func TestCopyNonTemporal(t *testing.T) {
	src := make([]byte, 1000)
	for i := range src {
		src[i] = byte(i * 7)
	}
	for n := range 300 {
		for at := range 70 {
			dst := make([]byte, 400)
			CopyNonTemporal(dst[at:at+n], src[:n])
			want := make([]byte, 400)
			copy(want[at:], src[:n])
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes at %d: wrong", n, at)
			}
		}
	}
}

func TestCopy(t *testing.T) {
	src := make([]byte, 1<<20)
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	for _, n := range []int{0, 1, 100, 8<<10 - 1, 8 << 10, 9000, 256<<10 + 8000, 600 << 10} {
		for _, at := range []int{0, 1, 40, 63, 64} {
			dst := make([]byte, n+200)
			Copy(dst[at:at+n], src[at/2:][:n])
			want := make([]byte, n+200)
			copy(want[at:], src[at/2:][:n])
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes at %d: wrong", n, at)
			}
		}
	}
}

func TestClaimChangesNothing(t *testing.T) {
	mem, want := make([]byte, 400), make([]byte, 400)
	for i := range mem {
		mem[i], want[i] = byte(i*7), byte(i*7)
	}
	for n := range 300 {
		for at := range 70 {
			Claim(mem[at : at+n])
			ClaimCopied(mem[at : at+n])
			ClaimAhead(mem[at : at+n])
		}
	}
	if !bytes.Equal(mem, want) {
		t.Error("something has changed")
	}
}

func TestAwaitEqual(t *testing.T) {
	word := uint64(3)
	beside := byte(0)
	if AwaitEqual(&word, 4, 10, &beside) || !AwaitEqual(&word, 3, 1, &beside) {
		t.Error("sees what is not there, or does not see what is")
	}
	go StoreRelease(&word, 1<<40)
	for !AwaitEqual(&word, 1<<40, 10, &beside) {
	}
}
