package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// mostAnswers is how many may wait to be written to one peer; more questions are not answered.
const mostAnswers = 8

// ask asks rank, a member, what it is in and what it called as collective seq. The mutex is held.
func (l *Lane) ask(rank int, seq uint64, tag int32) {
	p := l.ep.peers[rank]
	l.ep.want(p)
	l.ep.enqueue(p, frame{Header: wire.Header{Kind: wire.Ask, Tag: tag, Context: l.id, Fingerprint: call.Fingerprint{Seq: seq}}})
}

// asked answers p's question h. The mutex is held.
func (e *Endpoint) asked(p *peer, h wire.Header) {
	l := e.lanes[h.Context]
	for _, other := range e.lanes {
		other.takeOver()
	}
	switch {
	case l != nil && l.err != nil:
		l.tell(p.rank)
		return
	case e.closed || e.hasRetired(h.Context): // which p is told
		return
	}
	if l != nil && h.Tag == monitorTag {
		l.monitored = h.Seq
	}
	if l != nil && l.askers != nil {
		l.askers[p.rank] = h.Seq
	}
	e.answer(p, l, h.Context, h.Seq)
}

// answer tells p what this rank is in, in l if that is open, and what it called as collective seq. The mutex is held.
func (e *Endpoint) answer(p *peer, l *Lane, group, seq uint64) {
	if p.out.Count(wire.Answer) >= mostAnswers {
		return
	}
	doc := e.report(l, seq).Encode(wire.ReportLimit)
	e.enqueue(p, frame{Header: wire.Header{Kind: wire.Answer, Context: group, Size: uint64(len(doc)), Fingerprint: call.Fingerprint{Seq: seq}}, Payload: doc})
}

// report is what this rank says of itself in l, which is nil if it has not opened it yet. The mutex is held.
func (e *Endpoint) report(l *Lane, seq uint64) *diagnosis.Report {
	if l == nil {
		return &diagnosis.Report{Activity: diagnosis.Activity{Text: "it has not made the group"}}
	}
	last := l.collectives.Last()
	r := &diagnosis.Report{Seq: last.Seq, At: last, Activity: e.activity(l)}
	if c := l.collectives.At(seq); c != nil {
		r.At = c.Fingerprint
	}
	// Of several waits the one in the collective under way counts, then one in this lane.
	rank := func(s *stall) int {
		switch {
		case s.op.lane != l:
			return 2
		case s.op.seq == 0:
			return 1
		}
		return 0
	}
	var best *stall
	for _, s := range e.stalls {
		if s.op.awaited() >= 0 && (best == nil || rank(s) < rank(best)) {
			best = s
		}
	}
	if best != nil {
		r.Chain, r.Suspect = best.Follow(best.op.awaits(), time.Now())
	}
	return r
}

// activity says what this rank is in, if it is in anything, or was in last. The mutex is held.
func (e *Endpoint) activity(l *Lane) diagnosis.Activity {
	now := time.Now()
	var lanes []*Lane
	for _, other := range e.lanes {
		if other != l {
			lanes = append(lanes, other)
		}
	}
	slices.SortFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.id, b.id) })
	for _, in := range append([]*Lane{l}, lanes...) {
		if c := in.collectives.Latest(); c.IsUnderWay() {
			return diagnosis.Since(now, c.Began, "it is in %s%s, which began", e.name(c.Call, c.Seq), in.where(l))
		}
	}
	for _, s := range e.stalls {
		if s.op.seq == 0 {
			return diagnosis.Since(now, s.Since(), "it is in %s%s, which began", s.op.awaits().In, s.op.lane.where(l))
		}
	}
	last := l.collectives.Latest()
	if t := l.transfers.Latest(); last == nil || t != nil && t.Began.After(last.Began) {
		last = t
	}
	switch {
	case !l.refused.at.IsZero() && (last == nil || l.refused.at.After(last.Began)):
		return diagnosis.Since(now, l.refused.at, "its last call was refused (%s)", l.refused.text)
	case last == nil:
		return diagnosis.Activity{Text: "it has called nothing on the group"}
	case last.IsUnderWay():
		return diagnosis.Since(now, last.Began, "its last call was %s, started", e.name(last.Call, last.Seq))
	}
	return diagnosis.Since(now, last.Ended, "its last call was %s, which ended", e.name(last.Call, last.Seq))
}

// where names l to those who talk of asked.
func (l *Lane) where(asked *Lane) string {
	const most = 8
	switch {
	case l == asked:
		return ""
	case len(l.members) > most:
		return fmt.Sprintf(" of another group, of %d ranks", len(l.members))
	}
	return fmt.Sprintf(" of group %v", l.members)
}

// answered takes in what p says to an earlier question. The mutex is held.
func (e *Endpoint) answered(p *peer, h wire.Header, doc []byte) error {
	r := diagnosis.DecodeReport(doc, len(e.peers))
	if r == nil {
		return errors.New("sent a report that makes no sense")
	}
	l := e.lanes[h.Context]
	if l == nil || l.err != nil {
		return nil
	}
	if l.compare(p.rank, r.At) != nil {
		return nil
	}
	news := false
	for _, s := range e.stalls {
		if s.op.lane == l && s.op.seq == h.Seq && s.op.awaited() == p.rank {
			news = s.Answered(r, time.Now()) || news
		}
	}
	if news { // for those as well that wait for this rank
		for rank, seq := range l.askers {
			e.answer(e.peers[rank], l, l.id, seq)
		}
	}
	if l.monitor != nil && l.monitor.Seq == h.Seq {
		l.monitor.reported(p.rank, r)
	}
	return nil
}
