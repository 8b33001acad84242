package heap

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"unsafe"
)

// TestAHeapAdoptsWhatOthersLeave: buffers stay where they are, with what is in them, and are of use like any other.
func TestAHeapAdoptsWhatOthersLeave(t *testing.T) {
	m := new(Detached)
	if err := m.Await(t.Context()); err != nil {
		t.Errorf("a memory that nothing is left to: %v", err)
	}
	var bufs [][]byte
	for i := range 2 {
		h := New(listen(t), secret)
		h.Retain()
		h.Retain()
		for _, n := range []int{1, 5000, 3 << 20} {
			buf := allocate(t, h, n)
			fill(buf, byte(i+n))
			bufs = append(bufs, buf)
		}
		h.RetireRegions() // a collective has failed
		h.Detach(m)
		h.Detach(m)
		h.Release()
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("not yet"))
		if err := m.Await(ended); err == nil || err.Error() != "not yet" {
			t.Errorf("a heap that is in use: %v", err)
		}
		h.Release()
		if _, err := h.Alloc(1); !errors.Is(err, ErrReleased) {
			t.Errorf("the heap that has ended: %v", err)
		}
		h.Detach(m) // too late
	}
	if err := m.Await(t.Context()); err != nil {
		t.Error(err)
	}
	h, a := newHeap(t)
	h.Adopt(m)
	h.Adopt(m) // of nothing
	other, _ := newHeap(t)
	i := 0
	for round := range 2 {
		for _, n := range []int{1, 5000, 3 << 20} {
			buf := bufs[i]
			if i++; !filled(buf, byte(round+n)) {
				t.Errorf("a buffer of %d bytes has changed", n)
			}
			at, ok := h.Handle(buf)
			if !ok {
				t.Fatalf("others cannot attach a buffer of %d bytes", n)
			}
			mem, err := other.Attach(t.Context(), a.Address(), at.Segment)
			if err != nil || !bytes.Equal(mem[at.Offset:][:n], buf) {
				t.Errorf("attached: %v", err)
			}
			if !h.Free(unsafe.Pointer(&buf[0])) {
				t.Errorf("a buffer of %d bytes cannot be freed", n)
			}
		}
	}
	regions := len(h.regions)
	for range 10 {
		allocate(t, h, 3<<20)
	}
	if len(h.regions) != regions {
		t.Errorf("%d regions, and %d before", len(h.regions), regions)
	}
}

// TestRenewedMemoryIsThisRanksAlone: a process that has attached the old one, and goes on to write there, changes nothing.
func TestRenewedMemoryIsThisRanksAlone(t *testing.T) {
	h := New(listen(t), secret)
	h.Retain()
	bufs := [][]byte{allocate(t, h, 1), allocate(t, h, 5000), allocate(t, h, 3<<20), allocate(t, h, 100<<20)}
	other, _ := newHeap(t)
	var attached [][]byte
	for i, buf := range bufs {
		fill(buf, byte(i+1))
		at, _ := h.Handle(buf)
		mem, err := other.Attach(t.Context(), h.acceptor.Address(), at.Segment)
		if err != nil {
			t.Fatal(err)
		}
		attached = append(attached, mem[at.Offset:][:len(buf)])
	}
	if !h.Free(unsafe.Pointer(&bufs[1][0])) {
		t.Error("it cannot be freed")
	}
	m := new(Detached)
	h.Detach(m)
	h.Release()
	if err := m.Renew(); err != nil {
		t.Fatal(err)
	}
	next, a := newHeap(t)
	next.Adopt(m)
	for i, buf := range bufs {
		fill(attached[i], 99)
		if i == 1 {
			continue
		}
		if !filled(buf, byte(i+1)) {
			t.Errorf("a buffer of %d bytes has changed", len(buf))
		}
		fill(buf, 50)
		at, ok := next.Handle(buf)
		if !ok || !filled(attached[i], 99) {
			t.Errorf("a buffer of %d bytes is still shared", len(buf))
		}
		if mem, err := other.Attach(t.Context(), a.Address(), at.Segment); err != nil || !filled(mem[at.Offset:][:len(buf)], 50) {
			t.Errorf("attached again: %v", err)
		}
	}
	if buf := allocate(t, next, 5000); !filled(buf, 0) {
		t.Error("a new buffer is not zero")
	}
}

func fill(buf []byte, b byte) {
	for i := range buf {
		buf[i] = b
	}
}

func filled(buf []byte, b byte) bool { return bytes.Count(buf, []byte{b}) == len(buf) }

// TestUntilFreed: a buffer stays until it is freed, and its region as long as there is one in it.
func TestUntilFreed(t *testing.T) {
	m := &Detached{UntilFreed: true}
	h := New(nil, nil)
	h.Retain()
	one, two, empty := allocate(t, h, 1000), allocate(t, h, 2000), allocate(t, h, 3<<20)
	fill(one, 1)
	fill(two, 2)
	h.Free(unsafe.Pointer(unsafe.SliceData(empty)))
	h.Detach(m)
	h.Release()
	if !filled(one, 1) || !filled(two, 2) || len(m.regions) != 1 {
		t.Errorf("%d regions: want that of the buffers which have not been freed", len(m.regions))
	}
	for i, buf := range [][]byte{one, two} {
		start := unsafe.Pointer(unsafe.SliceData(buf))
		if !m.Free(start) || m.Free(start) || len(m.regions) != 1-i {
			t.Errorf("%d regions after %d buffers have been freed", len(m.regions), i+1)
		}
	}
}
