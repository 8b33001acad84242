package endpoint

import (
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// flightLength is how many collectives a lane remembers, and how many sends and receives.
const flightLength = 64

// A Record is what a lane remembers of one operation.
type Record struct {
	Seq            uint64 // its number among the lane's collectives, or among its sends, receives and probes
	Call           Call
	Before         uint32 // of a collective: what travels of the history before it
	Peer           int    // world rank or AnySource, of a send, receive or probe
	Tag            int
	Sent, Received uint64    // bytes that have been moved
	Began, Ended   time.Time // Ended is zero as long as it is under way
	Err            error     // once it has ended

	at cpu.Stamp // instead of Began and Ended, of one that was over at once
}

// A flight is a ring of the last records, the one of operation seq at seq modulo its length.
type flight struct {
	last    uint64
	records [flightLength]Record
}

// begin makes room for operation seq.
func (f *flight) begin(seq uint64, call Call, peer, tag int) {
	f.last = seq
	f.records[seq%flightLength] = Record{Seq: seq, Call: call, Peer: peer, Tag: tag, Began: now()}
}

// note is the next operation, which was over at once.
func (f *flight) note(at cpu.Stamp, call Call, peer, tag, sent, received int) {
	f.last++
	r := &f.records[f.last%flightLength]
	r.Seq, r.Call, r.Peer, r.Tag = f.last, call, peer, tag
	r.Sent, r.Received = uint64(sent), uint64(received)
	r.Err, r.at = nil, at
}

// at is the record of operation seq, or nil if there is none any more.
func (f *flight) at(seq uint64) *Record {
	r := &f.records[seq%flightLength]
	if seq == 0 || r.Seq != seq {
		return nil
	}
	if r.at != 0 {
		r.Began = r.at.Time()
		r.Ended, r.at = r.Began, 0
	}
	return r
}

func (f *flight) end(seq uint64, err error) {
	if r := f.at(seq); r != nil {
		r.Ended, r.Err = now(), err
	}
}

// start is when the program began.
var start = time.Now()

// now is time.Now, except that it takes half as long and knows nothing of a clock that has been set since.
func now() time.Time { return start.Add(time.Since(start)) }

// all are the records, oldest first.
func (f *flight) all() []Record {
	var records []Record
	for i := range f.records {
		if r := f.at(f.records[i].Seq); r != nil {
			records = append(records, *r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return int(a.Seq) - int(b.Seq) })
	return records
}

// moved counts the bytes of op, which has ended well, for the collective that it is a step of or for itself.
func (l *Lane) moved(op *Op) {
	r := l.transfers.at(op.number)
	if op.seq > 0 {
		r = l.collectives.at(op.seq)
	}
	switch {
	case r == nil || op.probe:
	case op.send:
		r.Sent += uint64(len(op.buf))
	default:
		r.Received += uint64(op.n)
	}
}

// Moved counts bytes for collective seq that have been moved by other means.
func (l *Lane) Moved(seq, sent, received uint64) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.catchUp()
	if r := l.collectives.at(seq); r != nil {
		r.Sent += sent
		r.Received += received
	}
}

// End says that collective seq has ended.
func (l *Lane) End(seq uint64, err error) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.catchUp()
	l.collectives.end(seq, err)
}

// A Flight is what a lane remembers.
type Flight struct {
	Collectives []Record // oldest first
	Transfers   []Record // sends, receives and probes
	Waits       []Wait   // of this rank for others, if they have lasted long enough to ask why
	Err         error    // why the lane has failed
}

// Flight is what the lane remembers now.
func (l *Lane) Flight() Flight {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.catchUp()
	f := Flight{Collectives: l.collectives.all(), Transfers: l.transfers.all(), Err: l.usable()}
	for _, s := range l.ep.stalls {
		if s.op.lane == l {
			f.Waits = append(f.Waits, s.wait())
		}
	}
	return f
}
