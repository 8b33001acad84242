package endpoint

import (
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A Track is where a rank notes collectives that it carries out without the endpoint, in a few nanoseconds and without a
// lock. One goroutine at a time writes, under the group's order; the lane reads it when somebody wants to know what the
// rank does or did, and takes over what is new.
type Track struct {
	seq   uint64 // the last collective noted
	notes [flightLength]note
}

// A note is a collective: its words are written one by one, seq last, and 0 while they are.
type note struct {
	seq            uint64
	call           [3]uint64
	began, ended   uint64 // stamps; ended 0: under way
	sent, received uint64 // bytes
}

// Track is the lane's.
func (l *Lane) Track() *Track { return &l.track }

// Usable says whether the lane has neither failed nor been closed.
func (l *Lane) Usable() bool { return !l.over.Load() }

// Begin notes that collective seq begins with call.
func (t *Track) Begin(seq uint64, call Call) {
	n := &t.notes[seq%flightLength]
	cpu.StoreRelease(&n.seq, 0)
	w := call.Words()
	cpu.StoreRelease(&n.call[0], w[0])
	cpu.StoreRelease(&n.call[1], w[1])
	cpu.StoreRelease(&n.call[2], w[2])
	cpu.StoreRelease(&n.began, uint64(cpu.Now()))
	cpu.StoreRelease(&n.ended, 0)
	cpu.StoreRelease(&n.seq, seq)
	cpu.StoreRelease(&t.seq, seq)
}

// End notes that collective seq has ended well, and how many bytes this rank has sent and received.
func (t *Track) End(seq, sent, received uint64) {
	n := &t.notes[seq%flightLength]
	cpu.StoreRelease(&n.sent, sent)
	cpu.StoreRelease(&n.received, received)
	cpu.StoreRelease(&n.ended, uint64(cpu.Now()))
}

// catchUp takes over what has been noted in the track. The endpoint's mutex is held.
func (l *Lane) catchUp() {
	last := atomic.LoadUint64(&l.track.seq)
	if last == 0 {
		return
	}
	for seq := last - min(last-1, flightLength-1); seq <= last; seq++ {
		r := l.collectives.at(seq)
		if r != nil && !r.Ended.IsZero() {
			continue
		}
		n, ok := l.track.read(seq)
		if !ok {
			continue
		}
		if r == nil {
			l.collectives.begin(seq, CallOf(n.call), 0, 0)
			r = l.collectives.at(seq)
		}
		r.Began = cpu.Stamp(n.began).Time()
		if n.ended != 0 {
			r.Ended, r.Sent, r.Received = cpu.Stamp(n.ended).Time(), n.sent, n.received
		}
		if seq > l.seq {
			l.seq, l.call = seq, r.Call
		}
	}
}

// read is the note of collective seq, if it can be read in one piece.
func (t *Track) read(seq uint64) (note, bool) {
	from := &t.notes[seq%flightLength]
	if atomic.LoadUint64(&from.seq) != seq {
		return note{}, false
	}
	n := note{
		began: atomic.LoadUint64(&from.began), ended: atomic.LoadUint64(&from.ended),
		sent: atomic.LoadUint64(&from.sent), received: atomic.LoadUint64(&from.received),
	}
	for i := range n.call {
		n.call[i] = atomic.LoadUint64(&from.call[i])
	}
	return n, atomic.LoadUint64(&from.seq) == seq
}

// Words are what c consists of.
func (c Call) Words() [3]uint64 {
	return [3]uint64{
		uint64(c.Op) | uint64(c.Type)<<8 | uint64(c.Reduce)<<16 | uint64(c.Detail)<<32, uint64(uint32(c.Root)), c.Count,
	}
}

// CallOf is the call that consists of w.
func CallOf(w [3]uint64) Call {
	return Call{
		Op: uint8(w[0]), Type: uint8(w[0] >> 8), Reduce: uint8(w[0] >> 16), Detail: uint32(w[0] >> 32),
		Root: int32(uint32(w[1])), Count: w[2],
	}
}
