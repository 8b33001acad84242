// Package flight is a flight recorder: it remembers the last operations of a rank on a group, so that one can see why a job hangs or
// fails. What the records mean is the matter of package diagnosis.
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
	Peer           int // world rank, or -1 for any, of a send or receive
	Tag            int
	Sent, Received uint64    // bytes that have been moved
	Began, Ended   time.Time // Ended is zero as long as it is under way
	Err            error     // once it has ended
}

// IsUnderWay reports whether there is a record, of an operation that has not ended.
func (r *Record) IsUnderWay() bool { return r != nil && r.Ended.IsZero() }

// A Recorder is a ring of the last operations, the one with number seq at seq modulo its length. Its owner's mutex
// guards it. Only BeginShort and EndShort write without the mutex, in a few nanoseconds. Of collectives, one begins
// when the one before has ended.
type Recorder struct {
	entries  [Length]entry
	last     uint64 // the number of the last operation that has begun
	failures [Length]failure
}

// An entry is an operation. Its first word is its number, and 0 while BeginShort changes the others.
type entry [8]uint64

// The words of an entry.
const (
	wordSeq   = iota
	wordCall             // three of them
	wordBegan = iota + 2 // a moment
	wordSent             // bytes
	wordReceived
	wordEnded // a moment; 0 as long as it is under way
)

// A failure is the error of operation seq.
type failure struct {
	seq uint64
	err error
}

// Next is the number of the next operation.
func (r *Recorder) Next() uint64 {
	r.last++
	return r.last
}

// Begin records that collective f has begun.
func (r *Recorder) Begin(f call.Fingerprint) {
	w := f.Call.Pack()
	w.RootAndBefore |= uint64(f.Before) << 32
	r.begin(f.Seq, w)
}

// BeginTransfer records that send or receive seq has begun.
func (r *Recorder) BeginTransfer(seq uint64, c call.Call, peer, tag int) {
	w := c.Pack()
	w.RootAndBefore = peerAndTag(peer, tag)
	r.begin(seq, w)
}

func (r *Recorder) begin(seq uint64, w call.Packed) {
	r.last = seq
	r.entries[seq%Length] = entry{seq, w.What, w.RootAndBefore, w.Count, uint64(now())}
}

// peerAndTag are what a send or receive has where a collective has its root and the history before it.
func peerAndTag(peer, tag int) uint64 { return uint64(uint32(peer)) | uint64(uint32(tag))<<32 }

// Moved counts bytes of operation seq.
func (r *Recorder) Moved(seq, sent, received uint64) {
	if n := r.entry(seq); n != nil {
		n[wordSent] += sent
		n[wordReceived] += received
	}
}

// End records that operation seq has ended.
func (r *Recorder) End(seq uint64, err error) {
	if n := r.entry(seq); n != nil {
		n[wordEnded] = uint64(now())
		if err != nil {
			r.failures[seq%Length] = failure{seq, err}
		}
	}
}

// NoteTransfer records the next operation, a send or receive that is over at once. Its call is packed: a struct of small
// fields is stored by the field and loaded as a whole, and the load waits until all stores before it are in the cache,
// those into memory of other ranks too.
func (r *Recorder) NoteTransfer(at cpu.Stamp, w call.Packed, peer, tag, sent, received int) {
	n := &r.entries[r.Next()%Length]
	n[wordSeq], n[wordCall], n[wordCall+1], n[wordCall+2] = r.last, w.What, peerAndTag(peer, tag), w.Count
	n[wordBegan], n[wordSent], n[wordReceived], n[wordEnded] = uint64(at), uint64(sent), uint64(received), uint64(at)
}

// BeginShort records that collective seq begins with the call that consists of w.
func (r *Recorder) BeginShort(seq uint64, w call.Packed) {
	cpu.Note((*[8]uint64)(&r.entries[seq%Length]), seq, w.What, w.RootAndBefore, w.Count)
	cpu.StoreRelease(&r.last, seq)
}

// EndShort records that collective seq has ended well, and how many bytes this rank has sent and received. If it was
// short, the time of its beginning is as good as that of its end, and known.
func (r *Recorder) EndShort(seq, sent, received uint64, short bool) {
	n := &r.entries[seq%Length]
	ended := n[wordBegan]
	if !short {
		ended = uint64(cpu.Now())
	}
	cpu.StoreThree((*[3]uint64)(n[wordSent:]), sent, received, ended)
}

// entry is the entry of operation seq, or nil if there is none any more.
func (r *Recorder) entry(seq uint64) *entry {
	n := &r.entries[seq%Length]
	if seq == 0 || n.load(wordSeq) != seq {
		return nil
	}
	return n
}

func (n *entry) load(word int) uint64 { return atomic.LoadUint64(&n[word]) }

// Recall returns operation seq, if it is remembered.
func (r *Recorder) Recall(seq uint64) (f call.Fingerprint, ok bool) {
	n := r.entry(seq)
	if n == nil {
		return f, false
	}
	w := call.Packed{What: n.load(wordCall), RootAndBefore: n.load(wordCall + 1), Count: n.load(wordCall + 2)}
	return call.Fingerprint{Seq: seq, Call: w.Call(), Before: w.Before()}, n.load(wordSeq) == seq
}

// Last returns the last collective that has begun. Its number is 0 if there is none.
func (r *Recorder) Last() call.Fingerprint {
	for {
		seq := atomic.LoadUint64(&r.last)
		f, ok := r.Recall(seq)
		switch {
		case ok:
			return f
		case seq == atomic.LoadUint64(&r.last):
			return call.Fingerprint{}
		}
	}
}

// IsUnderWay reports whether the last operation that has begun has not ended.
func (r *Recorder) IsUnderWay() bool {
	n := r.entry(atomic.LoadUint64(&r.last))
	return n != nil && n.load(wordEnded) == 0
}

// At is the record of operation seq, or nil if there is none any more.
func (r *Recorder) At(seq uint64) *Record {
	f, ok := r.Recall(seq)
	if !ok {
		return nil
	}
	n := &r.entries[seq%Length]
	record := &Record{
		Fingerprint: f, Sent: n.load(wordSent), Received: n.load(wordReceived), Began: moment(n.load(wordBegan)).time(),
	}
	if ended := n.load(wordEnded); ended != 0 {
		record.Ended = moment(ended).time()
		if record.Ended.Before(record.Began) { // to convert one stamp twice gives two times
			record.Ended = record.Began
		}
	}
	if n.load(wordSeq) != seq {
		return nil
	}
	if f.Call.Kind.IsPointToPoint() {
		record.Peer, record.Tag = int(f.Call.Root), int(int32(f.Before))
		record.Call.Root, record.Before = 0, 0
	}
	if e := &r.failures[seq%Length]; e.seq == seq {
		record.Err = e.err
	}
	return record
}

// Latest returns the record of the last operation that has begun, or nil.
func (r *Recorder) Latest() *Record { return r.At(atomic.LoadUint64(&r.last)) }

// All are the records, oldest first.
func (r *Recorder) All() []Record {
	var records []Record
	for i := range r.entries {
		if n := r.At(r.entries[i].load(wordSeq)); n != nil {
			records = append(records, *n)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return int(a.Seq) - int(b.Seq) })
	return records
}

// Moves is a number that changes when an operation begins, moves bytes, or ends.
func (r *Recorder) Moves() uint64 {
	const prime = 1_099_511_628_211 // of the hash FNV-1a
	sum := atomic.LoadUint64(&r.last)
	for i := range r.entries {
		n := &r.entries[i]
		sum = (sum ^ (n.load(wordSent) + n.load(wordReceived))) * prime
		if n.load(wordEnded) != 0 {
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
		over = now().time().Sub(records[0].Began)
	}
	return len(records), sent, received, over
}
