package schedule

// drain lets all that waits in t's buffer reach the memory.
func (m *Machine) drain(t *Thread) {
	for i := range t.buffer {
		m.write(t, &t.buffer[i])
	}
	t.buffer = t.buffer[:0]
}

// release lets t's releases reach the memory, and all before the last one.
func (m *Machine) release(t *Thread) {
	for i := len(t.buffer) - 1; i >= 0; i-- {
		if a := t.buffer[i].access; a == StoreRelease || a == StoreFull {
			m.drainBefore(t, i+1)
			return
		}
	}
}

// drainBefore lets the first n stores of t's buffer reach the memory, but for those in no order.
func (m *Machine) drainBefore(t *Thread, n int) {
	left := t.buffer[:0]
	for i := range t.buffer {
		if s := &t.buffer[i]; i < n && s.access != StoreAny {
			m.write(t, s)
		} else {
			left = append(left, *s)
		}
	}
	t.buffer = left
}

// drainOne lets one store reach the memory that may be the next: the oldest, or another one.
func (m *Machine) drainOne(t *Thread) {
	free := m.free[:0]
	for i := range t.buffer {
		if m.mayBeNext(t, i) {
			free = append(free, i)
		}
	}
	m.free = free
	i := free[m.Pick(len(free))]
	m.write(t, &t.buffer[i])
	t.buffer = append(t.buffer[:i], t.buffer[i+1:]...)
}

// mayBeNext reports whether the i'th store of t's buffer need not wait for those before it.
func (m *Machine) mayBeNext(t *Thread, i int) bool {
	s := &t.buffer[i]
	for j := range i {
		if before := &t.buffer[j]; overlap(before.at, before.n, s.at, s.n) || m.inOrder(before, s) {
			return false
		}
	}
	return true
}

// inOrder reports whether a reaches the memory before b, which has been stored later.
func (m *Machine) inOrder(a, b *store) bool {
	switch {
	case a.access == StoreFence || b.access == StoreFence:
		return true
	case a.access == StoreAny || b.access == StoreAny:
		return false
	case m.Model == Weak:
		return b.access == StoreRelease || b.access == StoreFull
	case a.access == StorePast || b.access == StorePast:
		return false
	default:
		return a.access != StoreString || b.access != StoreString || a.string != b.string
	}
}

// write lets s reach the memory.
func (m *Machine) write(t *Thread, s *store) {
	if s.n == 0 {
		return
	}
	w := write{at: s.at, n: s.n, thread: t.index}
	copy(w.old[:], m.mem[s.at:s.at+s.n])
	copy(m.mem[s.at:], s.data[:s.n])
	m.history = append(m.history, w)
	if s.access == StoreRelease || s.access == StoreFull {
		t.released = len(m.history)
	}
	for _, other := range m.threads {
		other.idle = other.idle && other == t
	}
	if m.Trace != nil {
		m.trace("  [%#x] = %x of %s is in memory", s.at, s.data[:min(s.n, 24)], t.Name)
	}
}
