package endpoint

import (
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A Track is where a rank notes collectives that it carries out without the endpoint, in a few nanoseconds and without a
// lock. One goroutine at a time writes, under the group's order; the lane reads it when somebody wants to know what the
// rank does or did, and takes over what is new.
type Track struct {
	notes [flightLength]note
	used  atomic.Bool
}

// A note is a collective, the words of which are written one by one. The first is its number, and 0 while the others change.
type note [8]uint64

// The words of a note.
const (
	noteSeq   = iota
	noteCall             // three of them
	noteBegan = iota + 2 // a stamp
	noteSent             // bytes
	noteReceived
	noteEnded // a stamp; 0 as long as it is under way
)

// Track is the lane's.
func (l *Lane) Track() *Track {
	if !l.track.used.Load() {
		l.track.used.Store(true)
	}
	return &l.track
}

// Usable says whether the lane has neither failed nor been closed.
func (l *Lane) Usable() bool { return !l.over.Load() }

// Begin notes that collective seq begins with the call that consists of w.
func (t *Track) Begin(seq uint64, w Words) {
	cpu.Note((*[8]uint64)(&t.notes[seq%flightLength]), seq, w.What, w.RootAndBefore, w.Count)
}

// End notes that collective seq has ended well, and how many bytes this rank has sent and received. Of one that was short
// the time of its beginning is as good as that of its end, and known.
func (t *Track) End(seq, sent, received uint64, short bool) {
	n := &t.notes[seq%flightLength]
	ended := n[noteBegan]
	if !short {
		ended = uint64(cpu.Now())
	}
	cpu.StoreThree((*[3]uint64)(n[noteSent:]), sent, received, ended)
}

// last is the number of the last collective noted.
func (t *Track) last() uint64 {
	last := uint64(0)
	if !t.used.Load() {
		return last
	}
	for i := range t.notes {
		last = max(last, atomic.LoadUint64(&t.notes[i][noteSeq]))
	}
	return last
}

// catchUp takes over what has been noted in the track. The endpoint's mutex is held.
func (l *Lane) catchUp() {
	last := l.track.last()
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
			w := Words{n[noteCall], n[noteCall+1], n[noteCall+2]}
			l.collectives.begin(seq, CallOf(w), 0, 0)
			r = l.collectives.at(seq)
			r.Before = w.Before()
		}
		r.Began = cpu.Stamp(n[noteBegan]).Time()
		if n[noteEnded] != 0 {
			r.Ended, r.Sent, r.Received = cpu.Stamp(n[noteEnded]).Time(), n[noteSent], n[noteReceived]
		}
		if seq > l.seq {
			l.seq, l.call, l.before = seq, r.Call, r.Before
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

// Words are what a call consists of, as numbers that are quickly passed on. The lower half of RootAndBefore is the root, the upper
// half what travels of the history before the call; see History.Add.
type Words struct{ What, RootAndBefore, Count uint64 }

// Words are what c consists of.
func (c Call) Words() Words {
	return Words{uint64(c.Op) | uint64(c.Type)<<8 | uint64(c.Reduce)<<16 | uint64(c.Detail)<<32, uint64(uint32(c.Root)), c.Count}
}

// InWords is a call without details in words.
func InWords(op, typ, reduce uint8, root, count int) Words {
	return Words{uint64(op) | uint64(typ)<<8 | uint64(reduce)<<16, uint64(uint32(root)), uint64(count)}
}

// CallOf is the call that consists of w.
func CallOf(w Words) Call {
	return Call{
		Op: uint8(w.What), Type: uint8(w.What >> 8), Reduce: uint8(w.What >> 16), Detail: uint32(w.What >> 32),
		Root: int32(uint32(w.RootAndBefore)), Count: w.Count,
	}
}
