// Package flight is a flight recorder: it remembers the last operations of a rank on a group, so that one can see why a job hangs or
// fails. The owner of a Recorder guards it. A Trace is written without a lock, in a few nanoseconds. What the records mean is the matter
// of package diagnosis.
package flight

import (
	"slices"
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
