//go:build schedule && linux

package shm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Buffers in heaps, which ranks use where they are.

// buffers lets ranks use each other's buffers in place.
func (w *world) buffers() *program {
	p := newProgram(w)
	n := 2 + w.rng.IntN(2)
	for range 1 + w.rng.IntN(2) {
		c := called{op: 1 + w.rng.IntN(8), size: choice.Registered.Least + w.rng.IntN(100), root: w.rng.IntN(n), red: "sum"}
		for range n {
			c.inHeap = append(c.inHeap, !w.chance(8))
		}
		p.calls = append(p.calls, c)
	}
	w.ranks(n, p.part)
	w.share()
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

// inHeap puts a buffer into r's heap.
func (w *world) inHeap(r int) memory {
	return func(b []byte) []byte {
		from := w.used[r]
		if from+len(b) > heapSize {
			panic("the heap is full")
		}
		w.used[r] = from + len(b) + 8
		mem := w.heaps[r][from:][:len(b):len(b)]
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
	w.used[r] = 0
}
