package schedule

import "time"

// Time passes when threads have let others run so many times, and in sleep when nothing else goes on: tick is long for
// a processor, and no store waits for as long.
const (
	tick    = 500 * time.Microsecond
	perTick = 3
)

// Now is how much time has passed.
func (m *Machine) Now() time.Duration { return m.now }

// Yield lets others run for a while.
func (m *Machine) Yield() {
	if !m.over && m.running != nil {
		m.Idle()
		m.step()
		if m.yields++; m.yields%perTick == 0 {
			m.elapse(tick)
		}
	}
}

// elapse lets so much time pass, in which all stores reach the memory.
func (m *Machine) elapse(d time.Duration) {
	for _, t := range m.threads {
		m.drain(t)
	}
	m.now += d
}

// Block lets others run until what is waited for has come.
func (m *Machine) Block(until func() bool) { m.sleep(until, 0) }

// sleep is Block for at most limit, if that is not 0.
func (m *Machine) sleep(until func() bool, limit time.Duration) {
	t := m.running
	if m.over || t == nil {
		return
	}
	t.until, t.limit, t.deadline = until, limit, m.now+limit
	m.step()
	t.until, t.limit = nil, 0
	m.catchUp(t)
}

// SleepOn is a futex's wait: it sleeps until Wake of that byte of the memory, for at most limit, unless the word there
// is not value. It may return for no reason, as when a signal comes.
func (m *Machine) SleepOn(at int, value uint32, limit time.Duration) {
	if !m.step() {
		return
	}
	t := m.running
	m.drain(t)
	m.catchUp(t)
	if access := m.weakened(SleepIf, at); access == SleepIf && m.word32(at) != value {
		m.trace("does not sleep: [%#x] is not %d", at, value)
		return
	}
	switch m.Pick(3) {
	case 1:
		m.trace("is woken for no reason")
		return
	case 2: // all others stand still meanwhile
		m.elapse(limit)
		m.catchUp(t)
		m.trace("sleeps on [%#x] for %v, while nobody runs", at, limit)
		return
	}
	m.trace("sleeps on [%#x] for %v", at, limit)
	t.sleepsOn, t.asleep = at, true
	m.sleep(func() bool { return !t.asleep }, limit)
	t.asleep = false
}

// Wake wakes those who sleep there.
func (m *Machine) Wake(at int) {
	if !m.step() || m.weakened(WakeUp, at) != WakeUp {
		return
	}
	m.drain(m.running)
	m.trace("wakes [%#x]", at)
	for _, t := range m.threads {
		if t.asleep && t.sleepsOn == at {
			t.asleep = false
		}
	}
}

// Send puts a byte into a socket, if there is room.
func (m *Machine) Send(socket int) {
	if m.step() && m.weakened(WakeUp, 0) == WakeUp {
		m.drain(m.running)
		m.trace("sends to socket %d", socket)
		if n := m.sockets[socket]; n >= 0 {
			m.sockets[socket] = min(n+1, socketSize)
		}
	}
}

// socketSize is how many bytes a socket holds.
const socketSize = 2

// Receive is how many bytes are in a socket. With take it takes as many as that out of it.
func (m *Machine) Receive(socket, take int) int {
	if !m.step() {
		return 0
	}
	m.drain(m.running)
	m.catchUp(m.running)
	n := m.sockets[socket]
	if n > 0 {
		m.sockets[socket] = max(n-take, 0)
	}
	return n
}

// Close lets a socket end: Receive is -1 from now on.
func (m *Machine) Close(socket int) { m.sockets[socket] = -1 }

// Poll waits until there is something in a socket, or it has ended.
func (m *Machine) Poll(socket int) { m.Block(func() bool { return m.sockets[socket] != 0 }) }
