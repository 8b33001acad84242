package stream

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/env/testing/testkit"
)

// rings are the two ends of a ring of the smallest size in this process.
func rings(t testing.TB) (*ringWriter, *ringReader) {
	t.Helper()
	memory, err := segment.Create(segment.PageSize + smallestRing)
	if err != nil {
		testkit.Cannot(t, "%v", err)
	}
	t.Cleanup(func() { _ = memory.Close() })
	mem := memory.Bytes()
	headers := newHeaders(mem)
	w, err := newRingWriter(&headers[0], mem[segment.PageSize:])
	if err != nil {
		t.Fatal(err)
	}
	return &w, &ringReader{end: end{header: &headers[0], mem: mem[segment.PageSize:]}}
}

// A ring delivers the bytes that went in, however both sides cut them.
func TestRingsCarryBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := rings(t)
		var in, out []byte
		next := byte(0)
		some := func(name string, most int) []byte {
			b := make([]byte, rapid.IntRange(0, most).Draw(rt, name))
			for i := range b {
				next++
				b[i] = next
			}
			return b
		}
		got := func(b []byte, err error) {
			if err != nil {
				rt.Fatal(err)
			}
			out = append(out, b...)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) {
				v := [][]byte{some("a", 100), some("b", 50_000), some("c", 3)}
				n, err := w.write(v)
				if err != nil {
					rt.Fatal(err)
				}
				in = append(in, bytes.Join(v, nil)[:n]...)
			},
			"write now": func(*rapid.T) {
				a, b := some("head", 56), some("body", 3000)
				if len(a)+len(b) > 0 && w.writeNow(a, b) {
					in = append(append(in, a...), b...)
				}
			},
			"read": func(*rapid.T) {
				b := make([]byte, rapid.IntRange(0, 70_000).Draw(rt, "room"))
				n, err := r.read(b)
				got(b[:n], err)
			},
			"peek": func(*rapid.T) {
				ok, err := r.rest > 0, error(nil)
				if !ok {
					ok, err = r.open(1)
				}
				if !ok {
					got(nil, err)
					return
				}
				b := r.ahead()
				b = b[:rapid.IntRange(0, len(b)).Draw(rt, "part")]
				got(b, nil)
				r.skip(len(b))
			},
			"": func(*rapid.T) {
				if len(out) > len(in) || !bytes.Equal(out, in[:len(out)]) {
					rt.Fatalf("%d bytes came out of %d, and others", len(out), len(in))
				}
			},
		})
		rest := make([]byte, len(in))
		n, err := r.read(rest)
		got(rest[:n], err)
		if !bytes.Equal(in, out) {
			rt.Fatalf("%d bytes went in, %d came out", len(in), len(out))
		}
	})
}

// Whatever the other process has written, an end returns an error and does no harm.
func TestRingsRefuseCorruptMemory(t *testing.T) {
	for _, size := range []uint64{LongestRecord + 1, 1 << 40, 1 << 63, ^uint64(0)} {
		w, r := rings(t)
		*w.word(0) = size
		if n, err := r.read(make([]byte, 10)); n != 0 || !errors.Is(err, errCorrupt) {
			t.Errorf("a record of %d bytes: read %d, %v", size, n, err)
		}
	}
	for _, taken := range []uint64{1, 64, 1 << 40, ^uint64(63)} {
		w, _ := rings(t)
		w.header.taken = taken
		b := [][]byte{make([]byte, LongestRecord)}
		var err error
		for range 10 {
			if _, err = w.write(b); err != nil {
				break
			}
		}
		if !errors.Is(err, errCorrupt) && taken != 64 { // which could be true by then
			t.Errorf("%d bytes taken: %v", taken, err)
		}
	}
}
