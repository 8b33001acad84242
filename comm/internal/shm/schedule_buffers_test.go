//go:build schedule && linux

package shm

import (
	"context"
	"syscall"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Buffers that ranks use where they are, in heaps and in private memory.

// buffers lets ranks use each other's buffers in place.
func (w *world) buffers() *program { return w.inPlace(1 + w.rng.IntN(2)) }

// inPlace lets ranks make a number of calls that use each other's buffers in place.
func (w *world) inPlace(calls int) *program {
	p := newProgram(w)
	n := 2 + w.rng.IntN(2)
	for range calls {
		c := called{op: 1 + w.rng.IntN(8), size: LeastInPlace + w.rng.IntN(100), root: w.rng.IntN(n), red: "sum"}
		for range n {
			c.inHeap = append(c.inHeap, !w.chance(8))
		}
		p.calls = append(p.calls, c)
	}
	w.ranks(n, p.part)
	w.share()
	return p
}

// privateBuffers lets ranks read each other's buffers with system calls, or use them in place.
func (w *world) privateBuffers() *program {
	p := w.inPlace(3 + w.rng.IntN(3)) // in the first ones they learn that others can read
	for i := range p.calls {
		c := &p.calls[i]
		c.size += w.rng.IntN(LeastInPlace + 100)
		for r := range w.n {
			c.inHeap[r], c.private = w.chance(4), append(c.private, !w.chance(8))
		}
	}
	for _, t := range w.teams {
		if !w.chance(4) {
			t.alwaysReads()
		}
	}
	return p
}

// refusedBuffers lets some reads of private buffers fail.
func (w *world) refusedBuffers() *program {
	p, often := w.privateBuffers(), 1+w.rng.IntN(12)
	w.deny = func() error {
		if w.chance(often) {
			return syscall.EPERM
		}
		return nil
	}
	return p
}

// share gives the ranks heaps, which all have attached.
func (w *world) share() {
	addresses := make([]string, w.n)
	for r, h := range heap.Simulated(w.heaps, addresses) {
		t := w.teams[r]
		t.Share(context.Background(), h, addresses)
		t.pushPolicy.nonTemporal = w.chance(3)
		t.pushPolicy.sinceSampled = 0
	}
}

// in puts a buffer into r's part of mems, which are the heaps or the privates.
func (w *world) in(mems [][]byte, r int) memory {
	return func(b []byte) []byte {
		from := w.used[r]
		if from+len(b) > heapSize {
			panic("the memory is full")
		}
		w.used[r] = from + len(b) + 8
		mem := mems[r][from:][:len(b):len(b)]
		cpu.CopyPlain(mem, b)
		return mem
	}
}

// scribble overwrites the buffers of a rank, as a program may do after an operation.
func (w *world) scribble(r int) {
	junk := make([]byte, w.used[r])
	for i := range junk {
		junk[i] = 0xee
	}
	cpu.CopyPlain(w.heaps[r], junk)
	cpu.CopyPlain(w.privates[r], junk)
	w.used[r] = 0
}
