package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// mostAnswers is how many may wait to be written to one peer; more questions are not answered.
const mostAnswers = 8

// ask asks rank, a member, what it is in and what it called as collective seq.
func (c *communicator) ask(rank int, seq uint64, tag int32) {
	p := c.ep.peers[rank]
	c.ep.connect(p)
	c.ep.enqueue(p, frame{Header: wire.Header{Kind: wire.Ask, Tag: tag, Context: c.id, Fingerprint: call.Fingerprint{Seq: seq}}})
}

// receiveAsk answers p's question h.
func (e *state) receiveAsk(p *peer, h wire.Header) {
	c := e.comms[h.Context]
	switch {
	case c != nil && c.err != nil:
		c.notify(p.rank)
		return
	case e.closed || e.hasRetired(h.Context): // which p is told
		return
	}
	if c != nil && h.Tag == monitorTag {
		c.monitored = h.Seq
	}
	if c != nil && c.askers != nil {
		c.askers[p.rank] = h.Seq
	}
	e.answer(p, c, h.Context, h.Seq)
}

// answer tells p what this rank is in, in c if that is open, and what it called as collective seq.
func (e *state) answer(p *peer, c *communicator, group, seq uint64) {
	if p.out.Count(wire.Answer) >= mostAnswers {
		return
	}
	doc := e.report(c, seq).Encode(wire.ReportLimit)
	h := wire.Header{Kind: wire.Answer, Context: group, Size: uint64(len(doc)), Fingerprint: call.Fingerprint{Seq: seq}}
	e.enqueue(p, frame{Header: h, Payload: doc})
}

// report is what this rank says of itself in c, which is nil if it has not opened it yet.
func (e *state) report(c *communicator, seq uint64) *diagnosis.WaitReport {
	r := &diagnosis.WaitReport{Activity: diagnosis.Activity{Text: "it has not made the group"}}
	if c != nil {
		last := c.collectives.Last()
		r.Seq, r.At, r.Activity = last.Seq, last, e.activity(c)
		if asked, ok := c.collectives.Recall(seq); ok {
			r.At = asked
		}
	}
	// Of several waits the one in the collective under way counts, then one in this communicator.
	rank := func(s *stall) int {
		switch {
		case s.op.comm != c:
			return 2
		case s.op.seq == 0:
			return 1
		}
		return 0
	}
	waits := slices.DeleteFunc(slices.Clone(e.stalls), func(s *stall) bool { return s.op.awaited() < 0 })
	if len(waits) > 0 {
		best := slices.MinFunc(waits, func(a, b *stall) int { return cmp.Compare(rank(a), rank(b)) })
		r.Chain, r.Suspect = best.Follow(best.op.awaits(), time.Now())
	}
	return r
}

// activity says what this rank is in, if it is in anything, or was in last.
func (e *state) activity(c *communicator) diagnosis.Activity {
	now := time.Now()
	all := slices.SortedFunc(maps.Values(e.comms), func(a, b *communicator) int { return cmp.Compare(a.id, b.id) })
	for _, in := range append([]*communicator{c}, all...) {
		if r := in.collectives.Latest(); r.IsUnderWay() {
			return diagnosis.Since(now, r.Began, "it is in %s%s, which %sbegan", nameOf(r.Call, r.Seq), in.where(c), in.progress(r.Seq, now))
		}
	}
	for _, s := range e.stalls {
		if s.op.seq == 0 {
			return diagnosis.Since(now, s.Since(), "it is in %s%s, which began", s.op.awaits().In, s.op.comm.where(c))
		}
	}
	last := c.collectives.Latest()
	if t := c.transfers.Latest(); last == nil || t != nil && t.Began.After(last.Began) {
		last = t
	}
	switch {
	case !c.refusedAt.IsZero() && (last == nil || c.refusedAt.After(last.Began)):
		return diagnosis.Since(now, c.refusedAt, "its last call was refused (%s)", c.refused)
	case last == nil:
		return diagnosis.Activity{Text: "it has called nothing on the group"}
	case last.IsUnderWay():
		return diagnosis.Since(now, last.Began, "its last call was %s, started", nameOf(last.Call, last.Seq))
	}
	return diagnosis.Since(now, last.Ended, "its last call was %s, which ended", nameOf(last.Call, last.Seq))
}

// An observation is how far a collective was when another rank wanted to know.
type observation struct {
	seq, moves uint64
	at         time.Time
	text       string // says whether it had gone on; empty: it is the first one
}

// observeAfter is how long a collective goes on between two observations. Many ranks may ask at the same time.
const observeAfter = time.Second

// progress says whether collective seq, which is under way, has gone on between the last observations of it.
func (c *communicator) progress(seq uint64, now time.Time) (text string) {
	last := c.observed
	switch moves := c.moves(); {
	case last.seq != seq:
		c.observed = observation{seq, moves, now, ""}
	case now.Sub(last.at) < observeAfter:
	case last.moves != moves:
		c.observed = observation{seq, moves, now, "makes progress, and "}
	default:
		c.observed = observation{seq, moves, now, "makes no progress, and "}
	}
	return c.observed.text
}

// where names the group of c in a report about asked. It is empty if that is the same group.
func (c *communicator) where(asked *communicator) string {
	const most = 8
	switch {
	case c == asked:
		return ""
	case len(c.members) > most:
		return fmt.Sprintf(" of another group, of %d ranks", len(c.members))
	}
	return fmt.Sprintf(" of group %v", c.members)
}

// receiveAnswer takes in what p says to an earlier question.
func (e *state) receiveAnswer(p *peer, h wire.Header, doc []byte) error {
	r := diagnosis.DecodeWaitReport(doc, len(e.peers))
	if r == nil {
		return errors.New("sent a report that makes no sense")
	}
	c := e.comms[h.Context]
	if c == nil || c.err != nil || c.compare(p.rank, r.At) != nil {
		return nil
	}
	news := false
	for _, s := range e.stalls {
		if s.op.comm == c && s.op.seq == h.Seq && s.op.awaited() == p.rank {
			news = s.Answered(r, time.Now()) || news
		}
	}
	if news { // for those as well that wait for this rank
		for rank, seq := range c.askers {
			e.answer(e.peers[rank], c, c.id, seq)
		}
	}
	if c.monitor != nil && c.monitor.Seq == h.Seq {
		c.monitor.reported(p.rank, r)
	}
	return nil
}
