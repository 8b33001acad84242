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

// A note is a collective, the words of which are written one by one. The first is its number, and 0 while the others change.
type note [8]uint64

// The words of a note.
const (
	noteSeq   = iota
	noteCall             // three of them
	noteBegan = iota + 2 // a stamp
	noteEnded            // a stamp; 0 as long as it is under way
	noteSent             // bytes
	noteReceived
)

// Track is the lane's.
func (l *Lane) Track() *Track { return &l.track }

// Usable says whether the lane has neither failed nor been closed.
func (l *Lane) Usable() bool { return !l.over.Load() }

// Begin notes that collective seq begins with call.
func (t *Track) Begin(seq uint64, call Call) {
	w := call.Words()
	cpu.Note((*[8]uint64)(&t.notes[seq%flightLength]), seq, w[0], w[1], w[2])
	cpu.StoreRelease(&t.seq, seq)
}

// End notes that collective seq has ended well, and how many bytes this rank has sent and received. Of one that was short
// the time of its beginning is as good as that of its end, and known.
func (t *Track) End(seq, sent, received uint64, short bool) {
	n := &t.notes[seq%flightLength]
	cpu.StoreRelease(&n[noteSent], sent)
	cpu.StoreRelease(&n[noteReceived], received)
	ended := n[noteBegan]
	if !short {
		ended = uint64(cpu.Now())
	}
	cpu.StoreRelease(&n[noteEnded], ended)
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
			l.collectives.begin(seq, CallOf([3]uint64(n[noteCall:noteBegan])), 0, 0)
			r = l.collectives.at(seq)
		}
		r.Began = cpu.Stamp(n[noteBegan]).Time()
		if n[noteEnded] != 0 {
			r.Ended, r.Sent, r.Received = cpu.Stamp(n[noteEnded]).Time(), n[noteSent], n[noteReceived]
		}
		if seq > l.seq {
			l.seq, l.call = seq, r.Call
		}
	}
}

// read is the note of collective seq, if it can be read in one piece.
func (t *Track) read(seq uint64) (n note, ok bool) {
	from := &t.notes[seq%flightLength]
	for i := range n {
		n[i] = atomic.LoadUint64(&from[i])
	}
	return n, n[noteSeq] == seq && atomic.LoadUint64(&from[noteSeq]) == seq
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
