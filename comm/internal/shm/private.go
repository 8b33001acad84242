package shm

import (
	"math"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/cma"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Memory outside of heaps is private to its process: other ranks cannot attach it. But a system call copies from it (CMA, package cma), where the
// system allows that. So a rank can export a private buffer as it exports one in a heap (inplace.go), by its address. The others read it at
// once, instead of from slots. A private export is what others read, in all operations.
//
// Whether CMA is faster depends on the processors, and on what the program does with its buffers. Two Intel Xeons took 11 us for an all-gather
// of 256 KiB, and 21 with slots; but if the ranks wrote their buffers in between, they took 30 and 21. So ranks try both (comparison.go). Until
// they have, they use CMA for long buffers if each rank has a processor: for an all-gather of 16 MiB they took 1.4 ms with CMA and 1.9 with slots, and
// 1.8 and 1.9 if they wrote their buffers in between; for an all-to-all 1.6 and 1.9, and 1.7 and 2.0. But four ranks on these two processors took 5.5
// and 3.1 for the all-gather. If a rank cannot read a buffer, it gets it from slots after all (fallback.go).

// privateMemory is the segment of an export whose offset is an address in its rank's memory.
const privateMemory = math.MaxUint64

// The operations that may use CMA.
const (
	scattering = iota
	gatheringAll
	exchangingAll
	privateOps
)

// The classes of lengths for which ranks try both ways, by what one rank reads from another. A Xeon's own cache has 2 MiB: that is much less, a good
// part of it, about as much, or more.
const (
	sizeClasses = 4
	long        = 2 // the first class for which ranks use CMA before they have compared
)

func sizeClass(n int) int {
	switch {
	case n < 256<<10:
		return 0
	case n < 1<<20:
		return 1
	case n < 2<<20:
		return long
	}
	return long + 1
}

// What a rank says about CMA, for an operation and a class of lengths.
const (
	cannotRead   = iota // it cannot read the private memory of all others, or does not know yet
	prefersSlots        // it can
	prefersCMA          // it can, and has found or guesses that this makes the program faster
)

// Preferences are what a rank publishes: what it says about CMA, in two bits for each operation and class, and above them the number of the
// operation in which it has refused to read, if it has; see refuse.
type preferences uint64

const refusedShift = 2 * privateOps * sizeClasses

func (p preferences) of(op, class int) uint64 {
	return uint64(p) >> (2 * (op*sizeClasses + class)) & 3
}

func (p preferences) with(op, class int, says uint64) preferences {
	shift := 2 * (op*sizeClasses + class)
	return p&^(3<<shift) | preferences(says<<shift)
}

// private is the state of a team whose ranks use private memory of each other.
type private struct {
	nonce       *uint64       // see cma.Process
	processes   []cma.Process // by rank, once this rank knows whether it can read their memory
	canRead     bool          // it can read that of all others
	said        preferences   // what it has published
	refused     uint64        // the last operation in which it has refused to read; 0: none
	exported    []byte        // what it exports; it is on the Go heap, because this points to it, so it does not move
	comparisons [privateOps][sizeClasses]comparison
}

// publishProcess says how others read this rank's memory.
func (t *Team) publishProcess() {
	t.private = private{nonce: new(uint64)}
	me, p := cma.Self(t.nonce), &t.ranks[t.me].process
	cpu.Store(&t.ranks[t.me].preferences, 0)
	cpu.Store(&p.NonceAt, me.NonceAt)
	cpu.Store(&p.Nonce, me.Nonce)
	cpu.Store(&p.PID, me.PID)
}

// probe finds out whether this rank can read the memory of all others, once all have published their processes.
func (t *Team) probe() {
	for r, c := range t.ranks {
		if r != t.me && cpu.Load(&c.process.PID) == 0 {
			return
		}
	}
	t.canRead = true
	for r, c := range t.ranks {
		p := cma.Process{PID: cpu.Load(&c.process.PID), NonceAt: cpu.Load(&c.process.NonceAt), Nonce: cpu.Load(&c.process.Nonce)}
		t.processes = append(t.processes, p)
		t.canRead = t.canRead && (r == t.me || p.Read(nil, 0) == nil)
	}
	if !t.canRead {
		return
	}
	all := preferences(0)
	for op := range privateOps {
		for class := range sizeClasses {
			t.comparisons[op][class].prefersCMA = class >= long && !t.waiter.Oversubscribed // a guess, until the first comparison
			all = all.with(op, class, t.comparisons[op][class].preference())
		}
	}
	t.say(all)
}

// preference is what a rank says that can read.
func (c *comparison) preference() uint64 {
	if c.prefersCMA {
		return prefersCMA
	}
	return prefersSlots
}

// say publishes p.
func (t *Team) say(p preferences) {
	if p != t.said {
		t.said = p
		cpu.Store(&t.ranks[t.me].preferences, uint64(p))
	}
}

// takeTurn reports whether ranks with buffers for others export them for CMA in this operation. bytes are those of the whole buffer, and p is what
// a rank reads from another one. Every rank calls it once in each operation, because comparisons count operations.
func (t *Team) takeTurn(op, bytes int, p span) bool {
	way := t.ways.private[op].Pick(bytes)
	if way != "auto" && way != "cma" || !t.isInPlace(p) || !t.hasStepsToServe(p.n) {
		return false
	}
	if t.processes == nil {
		t.probe()
	}
	class, least := sizeClass(p.n), uint64(prefersSlots)
	if way == "auto" {
		c := &t.comparisons[op][class]
		turn := c.next(&rhythms[class], cpu.Now())
		if t.canRead {
			t.say(t.said.with(op, class, c.preference()))
		}
		switch turn {
		case slotsTurn:
			return false
		case cmaTurn: // whoever can read does
		case noTurn:
			least = prefersCMA
		}
	}
	for _, c := range t.ranks {
		if preferences(cpu.Load(&c.preferences)).of(op, class) < least {
			return false
		}
	}
	return true
}

// exportPrivate exports buf for all others to read.
func (t *Team) exportPrivate(buf []byte) {
	t.exported = buf
	t.export(heap.Handle{Segment: privateMemory, Offset: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf))))})
}

// readPrivate waits for r's first step. If r exports private memory, readPrivate reads there what p says into dst, or refuses to.
func (t *Team) readPrivate(dst []byte, r int, p span) (bool, error) {
	t.attached[r].mem = nil
	from, exports, err := t.awaitExport(r)
	if !exports || from.Segment != privateMemory {
		return false, err
	}
	t.attached[r] = attachment{id: t.op, mem: dst, private: true}
	if t.refused == t.op {
		return true, nil
	}
	return true, t.copyPrivate(dst, r, from.Offset+uint64(p.at)) // which may overflow: the kernel checks addresses
}

// copyPrivate fills dst with r's memory at an address. It fails if r has abandoned the operation.
func (t *Team) copyPrivate(dst []byte, r int, from uint64) error {
	for len(dst) > 0 {
		n := min(len(dst), spreadBlock)
		if err := t.processes[r].Read(dst[:n], from); err != nil {
			if !t.exports(r) {
				return t.awaitFailure(r)
			}
			t.refuse()
			return nil
		}
		t.countMoved(n)
		t.Received += uint64(n)
		dst, from = dst[n:], from+uint64(n)
	}
	return nil
}
