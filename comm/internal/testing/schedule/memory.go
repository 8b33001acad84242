package schedule

import (
	"encoding/binary"
	"slices"
)

// What a thread stores waits in its buffer until it reaches the memory. The thread itself sees it there at once, the
// others only in the memory, which is one for all of them: neither x86 nor Armv8 lets one processor see another's store
// before the rest do.
//
// TSO is x86 (Sewell, Sarkar, Owens, Zappa Nardelli and Myreen: x86-TSO, CACM 2010): stores reach the memory in order,
// but for those past the caches and those of one string. Loads are in order.
//
// Weak is a simple part of Armv8 (Pulte, Flur, Deacon, French, Sarkar and Sewell: Simplifying ARM Concurrency, POPL
// 2018): stores to different bytes reach the memory in any order, but a release after all that comes before it. A load
// may have been satisfied early: it returns what was there at some time since the last acquire, though nothing older
// than what the thread has seen or written there. An acquire may be early as well, as others that come before it may be
// late, but not before a release (RCsc). An update is in order with all else of its thread, as it is where processors
// have instructions for it (LSE). Left out is that a store may be seen before a load that precedes it has been
// satisfied. Only a store in no order can be, of which others learn by a release, and that waits for the load.

// A Model is a kind of processor.
type Model int

// The kinds of processors.
const (
	TSO  Model = iota // x86
	Weak              // Armv8
)

func (m Model) String() string { return [...]string{"tso", "weak"}[m] }

// An Access is a way to use the memory.
type Access int

// The ways to use the memory.
const (
	LoadPlain    Access = iota
	LoadAcquire         // atomic.Load
	StorePlain          // an ordinary store
	StoreString         // one of a string of stores, which are in no order among each other; Weak: StorePlain
	StorePast           // past the caches; Weak: StorePlain
	StoreAny            // in no order, as no processor of either kind does it with a release: for what Weaken returns
	StoreRelease        // after all accesses before it
	StoreFull           // atomic.Store
	Update              // atomic.Add, atomic.Swap
	StoreFence          // stores before it reach the memory before those after it
	FenceThread         // loads before it are in order with those after it, and stores as well
	FenceAll            // membarrier: of all threads
	SleepIf             // a futex compares before it waits
	WakeUp              // of others
	Nothing             // for what Weaken returns
)

// unit is the most bytes of one access.
const unit = 64

// A store is on its way to the memory.
type store struct {
	access Access
	at, n  int
	string int // which of the thread's strings it is part of
	data   [unit]byte
}

// A write has reached the memory.
type write struct {
	at, n  int
	thread int
	old    [unit]byte
}

// A view is what a thread sees of the memory.
type view struct {
	buffer   []store
	strings  int
	floor    int    // the writes that all its loads see
	released int    // those that all its acquires see: up to its last release
	seen     []seen // since floor

	asleep   bool
	sleepsOn int
}

// seen is how many writes there were when a thread saw what is there.
type seen struct{ at, n, writes int }

// weakened is the access that there is instead.
func (m *Machine) weakened(a Access, at int) Access {
	if m.Weaken != nil && !m.over {
		return m.Weaken(a, at)
	}
	return a
}

// Load reads len(dst) bytes at a byte of the memory.
func (m *Machine) Load(dst []byte, at int, a Access) {
	for len(dst) > 0 {
		n := min(len(dst), unit-at%unit)
		m.load(dst[:n], at, a)
		dst, at = dst[n:], at+n
	}
}

func (m *Machine) load(dst []byte, at int, a Access) {
	if !m.step() {
		copy(dst, m.mem[at:])
		return
	}
	t := m.running
	a = m.weakened(a, at)
	if a == LoadAcquire && m.Model == Weak {
		m.release(t)
	}
	copy(dst, m.mem[at:])
	if m.Model == Weak {
		m.goBack(t, dst, at, a)
	}
	for i := range t.buffer {
		s := &t.buffer[i]
		if from, to := max(s.at, at), min(s.at+s.n, at+len(dst)); from < to {
			copy(dst[from-at:to-at], s.data[from-s.at:to-s.at])
		}
	}
	if m.Trace != nil {
		m.trace("load%s [%#x] = %x", suffix(a), at, dst[:min(len(dst), 24)])
	}
}

// goBack makes dst, which is at that byte of the memory now, what t sees there.
func (m *Machine) goBack(t *Thread, dst []byte, at int, a Access) {
	least := t.floor
	if a == LoadAcquire {
		least = max(least, t.released)
	}
	for _, s := range t.seen {
		if overlap(s.at, s.n, at, len(dst)) {
			least = max(least, s.writes)
		}
	}
	saw := least // the first time at which this could have been seen
	versions := m.free[:0]
	for i := len(m.history) - 1; i >= least; i-- {
		if w := &m.history[i]; overlap(w.at, w.n, at, len(dst)) {
			if w.thread == t.index {
				saw = i + 1
				break
			}
			versions = append(versions, i)
		}
	}
	m.free = versions
	if len(versions) > 0 {
		back := m.Pick(len(versions) + 1)
		for _, i := range versions[:back] {
			w := &m.history[i]
			from, to := max(w.at, at), min(w.at+w.n, at+len(dst))
			copy(dst[from-at:to-at], w.old[from-w.at:to-w.at])
		}
		if back < len(versions) {
			saw = versions[back] + 1
		}
	}
	if a == LoadAcquire {
		t.floor = saw
		t.seen = slices.DeleteFunc(t.seen, func(s seen) bool { return s.writes <= saw })
	} else {
		t.seen = append(t.seen, seen{at, len(dst), saw})
	}
}

// Store writes src at a byte of the memory.
func (m *Machine) Store(at int, src []byte, a Access) {
	if a == StoreString && m.running != nil {
		m.running.strings++
	}
	for len(src) > 0 {
		n := min(len(src), unit-at%unit)
		m.store(at, src[:n], a)
		src, at = src[n:], at+n
	}
}

func (m *Machine) store(at int, src []byte, a Access) {
	if !m.step() {
		return
	}
	t := m.running
	if a = m.weakened(a, at); a == Nothing {
		return
	}
	if m.Trace != nil {
		m.trace("store%s [%#x] = %x", suffix(a), at, src[:min(len(src), 24)])
	}
	s := store{access: a, at: at, n: len(src), string: t.strings}
	copy(s.data[:], src)
	t.buffer = append(t.buffer, s)
	if a == StoreFull && m.Model == TSO {
		m.drain(t)
	}
}

// Update is an atomic change of the word there: it becomes change of it. It returns what it was.
func (m *Machine) Update(at int, change func(uint32) uint32) uint32 {
	if !m.step() {
		return m.word32(at)
	}
	t := m.running
	if m.weakened(Update, at) == Nothing {
		return m.word32(at)
	}
	m.drain(t)
	was := m.word32(at)
	s := store{at: at, n: 4}
	binary.NativeEndian.PutUint32(s.data[:], change(was))
	m.write(t, &s)
	m.catchUp(t)
	m.trace("update [%#x] = %d, was %d", at, m.word32(at), was)
	return was
}

// Fence is a StoreFence, a FenceThread or a FenceAll.
func (m *Machine) Fence(a Access) {
	if a == StoreFence && m.Model == Weak || !m.step() {
		return
	}
	switch m.weakened(a, 0) {
	case FenceThread:
		if t := m.running; m.Model == Weak {
			t.buffer = append(t.buffer, store{access: StoreFence})
			for _, s := range t.seen {
				t.floor = max(t.floor, s.writes)
			}
		}
	case StoreFence:
		m.running.buffer = append(m.running.buffer, store{access: StoreFence})
	case FenceAll:
		m.trace("fence on all")
		for _, t := range m.threads {
			m.drain(t)
		}
		for _, t := range m.threads {
			m.catchUp(t)
		}
	default: // it is not there
	}
}

// catchUp makes sure that t sees all that is in memory now.
func (m *Machine) catchUp(t *Thread) { t.floor, t.seen = len(m.history), t.seen[:0] }

func (m *Machine) word32(at int) uint32 { return binary.NativeEndian.Uint32(m.mem[at:]) }

func overlap(a, n, b, k int) bool { return a < b+k && b < a+n }

func suffix(a Access) string {
	switch a {
	case LoadAcquire:
		return ".acquire"
	case StoreRelease:
		return ".release"
	case StoreFull:
		return ".full"
	case StorePast:
		return ".past"
	default:
		return ""
	}
}
