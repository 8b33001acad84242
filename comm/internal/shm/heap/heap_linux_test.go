package heap

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

var secret = []byte("a secret of 16 bytes and more")

func listen(t testing.TB) *acceptor.Acceptor {
	t.Helper()
	a, err := acceptor.Listen(secret, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// newHeap returns a heap that others can attach.
func newHeap(t testing.TB) (*Heap, *acceptor.Acceptor) {
	t.Helper()
	d := listen(t)
	h := New(d, secret)
	h.Retain()
	t.Cleanup(h.Release)
	return h, d
}

// allocate allocates, or fails the test.
func allocate(t testing.TB, h *Heap, n int) []byte {
	t.Helper()
	mem, err := h.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(mem) != n || cap(mem) != n {
		t.Fatalf("got %d bytes with room for %d, want %d", len(mem), cap(mem), n)
	}
	return mem
}

func start(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

func TestHeap(t *testing.T) {
	h, d := newHeap(t)
	rng := rand.New(rand.NewPCG(1, 1))
	type buffer struct {
		mem  []byte
		mark byte
	}
	var all []buffer
	for i := range 300 {
		if len(all) > 20 || len(all) > 0 && rng.IntN(2) == 0 {
			k := rng.IntN(len(all))
			for _, b := range []byte{all[k].mem[0], all[k].mem[len(all[k].mem)-1]} {
				if b != all[k].mark {
					t.Fatalf("step %d: %d has become %d", i, all[k].mark, b)
				}
			}
			if h.Free(unsafe.Add(start(all[k].mem), 1)) || !h.Free(start(all[k].mem)) || h.Free(start(all[k].mem)) {
				t.Fatalf("step %d: only what has been allocated can be freed", i)
			}
			all = slices.Delete(all, k, k+1)
			continue
		}
		mem := allocate(t, h, 1+rng.IntN(1<<rng.IntN(24)))
		if zeros := bytes.Count(mem, []byte{0}); zeros < len(mem) {
			t.Fatalf("%d of %d bytes are zero", zeros, len(mem))
		}
		if at := uintptr(start(mem)); at%4096 != 0 || len(mem) >= segment.LargePage && at%segment.LargePage != 0 {
			t.Fatalf("%d bytes begin at %#x", len(mem), at)
		}
		mark := byte(1 + rng.IntN(255))
		copy(mem, bytes.Repeat([]byte{mark}, len(mem)))
		all = append(all, buffer{mem, mark})
	}
	for _, k := range all {
		from := rng.IntN(len(k.mem))
		mem := k.mem[from:]
		at, ok := h.Handle(mem)
		if !ok {
			t.Fatal("a part of a buffer has no handle")
		}
		theirs, err := h.Attach(t.Context(), d.Address(), at.Segment)
		if err != nil {
			t.Fatal(err)
		}
		same := theirs[at.Offset:][:len(mem)]
		if !bytes.Equal(same, mem) || start(same) == start(mem) {
			t.Error("others see something else")
		}
	}
	if _, ok := h.Handle(make([]byte, 10)); ok {
		t.Error("ordinary memory has a handle")
	}
	if n := len(h.regions); n > 4 {
		t.Errorf("it has %d regions", n)
	}
}

func TestLargeMemoryIsInLargePages(t *testing.T) {
	h, _ := newHeap(t)
	mem := allocate(t, h, 2*segment.LargePage+10)
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(smaps), fmt.Sprintf("\n%x-", start(mem)))
	_, rest, _ = strings.Cut(rest, "\nShmemPmdMapped:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	if kib == 2*segment.LargePage>>10 {
		return
	}
	if err := unix.Madvise(mem[:2*segment.LargePage], unix.MADV_COLLAPSE); err != nil {
		t.Skip("this system has none: ", err)
	}
	t.Errorf("%d KiB of %d bytes are in large pages", kib, len(mem))
}

func TestMoreMemoryThanThereIs(t *testing.T) {
	h, d := newHeap(t)
	for _, n := range []int{1 << 46, math.MaxInt} {
		if _, err := h.Alloc(n); err == nil || !strings.Contains(err.Error(), "cannot allocate memory") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := h.Attach(t.Context(), d.Address(), 1); err == nil {
		t.Error("attached a segment that does not exist")
	}
	allocate(t, h, 1) // goes on
}

// After a failure nothing is allocated where others may still write.
func TestRetiredRegionsAreNotUsedAgain(t *testing.T) {
	h, _ := newHeap(t)
	old := allocate(t, h, 100)
	h.RetireRegions()
	if !h.Free(start(old)) {
		t.Error("a buffer in a retired region cannot be freed")
	}
	if young := allocate(t, h, 100); start(old) == start(young) {
		t.Error("a retired region is used again")
	}
}

// Nothing is left of a heap whose last user has released it, on neither side.
func TestReleaseLeavesNothing(t *testing.T) {
	maps, fds := leftovers(t)
	d := listen(t)
	h, other := New(d, secret), New(nil, secret)
	for range 2 {
		h.Retain()
	}
	other.Retain()
	for _, n := range []int{1, 5 << 20, 100 << 20} {
		at, _ := h.Handle(allocate(t, h, n))
		if _, err := other.Attach(t.Context(), d.Address(), at.Segment); err != nil {
			t.Fatal(err)
		}
	}
	h.Release()
	allocate(t, h, 10)
	h.Release()
	other.Release()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if m, f := leftovers(t); m > maps || f > fds {
		t.Errorf("from %d to %d mappings, from %d to %d descriptors", maps, m, fds, f)
	}
	if _, err := h.Alloc(1); !errors.Is(err, ErrReleased) {
		t.Errorf("after the end: %v", err)
	}
}

// leftovers counts mappings of segments, and descriptors of these and of sockets.
func leftovers(t *testing.T) (maps, fds int) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.Contains(to, "memfd") || strings.Contains(to, "socket") {
			fds++
		}
	}
	return bytes.Count(text, []byte("memfd:gorun")), fds
}
