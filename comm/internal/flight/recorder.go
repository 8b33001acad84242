// Package flight is a flight recorder: it remembers the last operations of a rank on a group, so that one can see why a job hangs or
// fails. The owner of a Recorder guards it. A Trace is written without a lock, in a few nanoseconds. What the records mean is the matter
// of package diagnosis.
package flight

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// Length is how many operations are remembered.
const Length = 64

// A Record is what is remembered of one operation. Its number counts collectives, or sends, receives and probes.
type Record struct {
	call.Fingerprint
	Peer           int // world rank, or -1 for any, of a send, receive or probe
	Tag            int
	Sent, Received uint64    // bytes that have been moved
	Began, Ended   time.Time // Ended is zero as long as it is under way
	Err            error     // once it has ended

	at cpu.Stamp // instead of Began and Ended, of one that was over at once
}

// IsUnderWay reports whether there is a record, of an operation that has not ended.
func (r *Record) IsUnderWay() bool { return r != nil && r.Ended.IsZero() }

// A Recorder is a ring of the last records, the one of operation seq at seq modulo its length.
type Recorder struct {
	last    uint64
	records [Length]Record
}

// Last returns the last operation that has begun. Its number is 0 if there is none.
func (r *Recorder) Last() call.Fingerprint { return r.records[r.last%Length].Fingerprint }

// Next is the number of the next operation.
func (r *Recorder) Next() uint64 {
	r.last++
	return r.last
}

// Begin records that operation f has begun.
func (r *Recorder) Begin(f call.Fingerprint, peer, tag int) {
	r.last = f.Seq
	r.records[f.Seq%Length] = Record{Fingerprint: f, Peer: peer, Tag: tag, Began: now()}
}

// Note records the next operation, which has already ended.
func (r *Recorder) Note(at cpu.Stamp, c call.Call, peer, tag, sent, received int) {
	r.last++
	n := &r.records[r.last%Length]
	n.Seq, n.Call, n.Peer, n.Tag = r.last, c, peer, tag
	n.Sent, n.Received = uint64(sent), uint64(received)
	n.Err, n.at = nil, at
}

// At is the record of operation seq, or nil if there is none any more.
func (r *Recorder) At(seq uint64) *Record {
	n := &r.records[seq%Length]
	if seq == 0 || n.Seq != seq {
		return nil
	}
	if n.at != 0 {
		n.Began = n.at.Time()
		n.Ended, n.at = n.Began, 0
	}
	return n
}

// Latest returns the record of the last operation that has begun, or nil.
func (r *Recorder) Latest() *Record { return r.At(r.last) }

// Moved counts bytes of operation seq.
func (r *Recorder) Moved(seq, sent, received uint64) {
	if n := r.At(seq); n != nil {
		n.Sent += sent
		n.Received += received
	}
}

// End records that operation seq has ended.
func (r *Recorder) End(seq uint64, err error) {
	if n := r.At(seq); n != nil {
		n.Ended, n.Err = now(), err
	}
}

// Moves is a number that changes when an operation begins, moves bytes, or ends.
func (r *Recorder) Moves() uint64 {
	const prime = 1_099_511_628_211 // of the hash FNV-1a
	sum := r.last
	for i := range r.records {
		n := &r.records[i]
		sum = (sum ^ (n.Sent + n.Received)) * prime
		if n.at != 0 || !n.Ended.IsZero() {
			sum++
		}
	}
	return sum
}

// Pace is the median time from the end of one operation to the beginning of the next, of the last ones, and how many these are.
func (r *Recorder) Pace() (median time.Duration, samples int) {
	var gaps []time.Duration
	var last Record
	for _, n := range r.All() {
		if last.Seq > 0 && n.Seq == last.Seq+1 && !last.Ended.IsZero() {
			gaps = append(gaps, max(n.Began.Sub(last.Ended), 0))
		}
		last = n
	}
	if len(gaps) == 0 {
		return 0, 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2], len(gaps)
}

// Recent is how many operations there are records of, how many bytes they have moved, and how long ago the first of them began.
func (r *Recorder) Recent() (operations int, sent, received uint64, over time.Duration) {
	records := r.All()
	for i := range records {
		sent, received = sent+records[i].Sent, received+records[i].Received
	}
	if len(records) > 0 {
		over = now().Sub(records[0].Began)
	}
	return len(records), sent, received, over
}

// All are the records, oldest first.
func (r *Recorder) All() []Record {
	var records []Record
	for i := range r.records {
		if n := r.At(r.records[i].Seq); n != nil {
			records = append(records, *n)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return int(a.Seq) - int(b.Seq) })
	return records
}

// start is when the program began.
var start = time.Now()

// now is time.Now, except that it takes half as long and knows nothing of a clock that has been set since.
func now() time.Time { return start.Add(time.Since(start)) }

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
func (t *Trace) Begin(seq uint64, w call.Packed) {
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
			w := call.Packed{What: e[wordCall], RootAndBefore: e[wordCall+1], Count: e[wordCall+2]}
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
