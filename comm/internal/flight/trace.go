package flight

import (
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// A Trace records collectives without a lock, in a few nanoseconds. One goroutine at a time writes, under the group's order. A Recorder
// takes over the new entries when they are needed.
type Trace struct {
	entries [Length]entry
	used    atomic.Bool
}

// An entry is a collective. Its words are written one by one. The first one is its number, and 0 while the others change.
type entry [8]uint64

// The words of an entry.
const (
	wordSeq   = iota
	wordCall             // three of them
	wordBegan = iota + 2 // a stamp
	wordSent             // bytes
	wordReceived
	wordEnded // a stamp; 0 as long as it is under way
)

// Use says that the trace is about to be written.
func (t *Trace) Use() {
	if !t.used.Load() {
		t.used.Store(true)
	}
}

// Begin notes that collective seq begins with the call that consists of w.
func (t *Trace) Begin(seq uint64, w call.Words) {
	cpu.Note((*[8]uint64)(&t.entries[seq%Length]), seq, w.What, w.RootAndBefore, w.Count)
}

// End notes that collective seq has ended well, and how many bytes this rank has sent and received. Of one that was short
// the time of its beginning is as good as that of its end, and known.
func (t *Trace) End(seq, sent, received uint64, short bool) {
	n := &t.entries[seq%Length]
	ended := n[wordBegan]
	if !short {
		ended = uint64(cpu.Now())
	}
	cpu.StoreThree((*[3]uint64)(n[wordSent:]), sent, received, ended)
}

// last is the number of the last collective noted.
func (t *Trace) last() uint64 {
	last := uint64(0)
	if !t.used.Load() {
		return last
	}
	for i := range t.entries {
		last = max(last, atomic.LoadUint64(&t.entries[i][wordSeq]))
	}
	return last
}

// read is the entry of collective seq, if it can be read in one piece.
func (t *Trace) read(seq uint64) (n entry, ok bool) {
	from := &t.entries[seq%Length]
	for i := range n {
		n[i] = atomic.LoadUint64(&from[i])
	}
	return n, n[wordSeq] == seq && atomic.LoadUint64(&from[wordSeq]) == seq
}

// TakeOver records the new entries of t. It skips entries whose place in r has a newer operation.
func (r *Recorder) TakeOver(t *Trace) {
	last := t.last()
	if last == 0 {
		return
	}
	for seq := max(last, r.last) - min(max(last, r.last)-1, Length-1); seq <= last; seq++ {
		n := r.At(seq)
		if n != nil && !n.IsUnderWay() {
			continue
		}
		e, ok := t.read(seq)
		if !ok {
			continue
		}
		if n == nil {
			w := call.Words{What: e[wordCall], RootAndBefore: e[wordCall+1], Count: e[wordCall+2]}
			n = &r.records[seq%Length]
			*n = Record{Fingerprint: call.Fingerprint{Seq: seq, Call: w.Call(), Before: w.Before()}}
		}
		n.Began = cpu.Stamp(e[wordBegan]).Time()
		if e[wordEnded] != 0 {
			n.Ended, n.Sent, n.Received = cpu.Stamp(e[wordEnded]).Time(), e[wordSent], e[wordReceived]
		}
		r.last = max(r.last, seq)
	}
}
