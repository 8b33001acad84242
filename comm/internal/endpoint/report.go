package endpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// reportLimit bounds the document of an answer, in bytes.
	reportLimit = 16 << 10
	// longestText bounds each text in it.
	longestText = 512
	// mostAnswers is how many may wait to be written to one peer; more questions are not answered.
	mostAnswers = 8
)

// A report is what a rank says to one that waits for it in a lane.
type report struct {
	Seq   uint64 `json:"seq"`             // the last collective that it has begun there
	At    called `json:"at"`              // the collective that it was asked about, if it remembers that, or the last one
	Doing doing  `json:"doing"`           // what it is in, or was in last
	Chain []Wait `json:"chain,omitempty"` // its own wait, and that of the rank which it waits for, and so on
	Blame *blame `json:"blame,omitempty"` // who is at the end of Chain; nil if that is a circle
}

// A doing says what a rank does or does not do, and, unless Ago is 0, since when.
type doing struct {
	Text string        `json:"text"`
	Ago  time.Duration `json:"ago,omitempty"`
}

func since(t time.Time, format string, args ...any) doing {
	return doing{fmt.Sprintf(format, args...), max(time.Since(t), 1)}
}

// aged is d, which was said some time ago, as it is now.
func (d doing) aged(by time.Duration) doing {
	if d.Ago > 0 {
		d.Ago += by
	}
	return d
}

func (d doing) String() string {
	if d.Ago == 0 {
		return d.Text
	}
	return fmt.Sprintf("%s %v ago", d.Text, d.Ago.Round(time.Millisecond))
}

// says reports whether r and other, which may be nil, give the same reason for a wait.
func (r *report) says(other *report) bool {
	if other == nil || r.Doing.Text != other.Doing.Text || (r.Blame == nil) != (other.Blame == nil) {
		return false
	}
	return slices.Equal(r.Chain, other.Chain) &&
		(r.Blame == nil || r.Blame.Rank == other.Blame.Rank && r.Blame.Text == other.Blame.Text)
}

// decodeReport reads an answer, in a world of size. nil: nonsense.
func decodeReport(b []byte, size int) *report {
	r := &report{}
	good := func(rank int, text string) bool { return 0 <= rank && rank < size && len(text) <= longestText }
	if json.Unmarshal(b, r) != nil || len(r.Chain) > longestChain || !good(0, r.Doing.Text) || r.Blame != nil && !good(r.Blame.Rank, r.Blame.Text) {
		return nil
	}
	for _, w := range r.Chain {
		if !good(w.Rank, w.In) || !good(w.For, "") {
			return nil
		}
	}
	return r
}

// ask asks rank, a member, what it is in and what it called as collective seq. The mutex is held.
func (l *Lane) ask(rank int, seq uint64, tag int32) {
	p := l.ep.peers[rank]
	l.ep.want(p)
	l.ep.enqueue(p, frame{header: header{kind: kindAsk, tag: tag, group: l.id, seq: seq}})
}

// asked answers p's question h. The mutex is held.
func (e *Endpoint) asked(p *peer, h header) {
	l := e.lanes[h.group]
	for _, other := range e.lanes {
		other.catchUp()
	}
	switch {
	case l != nil && l.err != nil:
		l.tell(p.rank)
		return
	case e.closed || e.hasRetired(h.group): // which p is told
		return
	}
	if l != nil && h.tag == rollTag {
		l.rolled = h.seq
	}
	if l != nil && l.askers != nil {
		l.askers[p.rank] = h.seq
	}
	e.answer(p, l, h.group, h.seq)
}

// answer tells p what this rank is in, in l if that is open, and what it called as collective seq. The mutex is held.
func (e *Endpoint) answer(p *peer, l *Lane, group, seq uint64) {
	waiting := 0
	for _, f := range p.out {
		if f.kind == kindAnswer {
			waiting++
		}
	}
	if waiting >= mostAnswers {
		return
	}
	r := e.report(l, seq)
	doc, err := json.Marshal(r)
	for err == nil && len(doc) > reportLimit {
		r.Chain = r.Chain[:len(r.Chain)/2]
		doc, err = json.Marshal(r)
	}
	if err != nil {
		panic(err) // numbers and strings cannot fail
	}
	e.enqueue(p, frame{header: header{kind: kindAnswer, group: group, seq: seq, size: uint64(len(doc))}, payload: doc})
}

// report is what this rank says of itself in l, which is nil if it has not opened it yet. The mutex is held.
func (e *Endpoint) report(l *Lane, seq uint64) *report {
	if l == nil {
		return &report{Doing: doing{Text: "it has not made the group"}}
	}
	r := &report{Seq: l.seq, At: l.called(), Doing: e.doing(l)}
	if c := l.collectives.at(seq); c != nil {
		r.At = c.called()
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
		r.Chain, r.Blame = best.reason()
		r.Chain = r.Chain[:min(len(r.Chain), longestChain)]
	}
	return r
}

// doing says what this rank is in, if it is in anything, or was in last. The mutex is held.
func (e *Endpoint) doing(l *Lane) doing {
	var lanes []*Lane
	for _, other := range e.lanes {
		if other != l {
			lanes = append(lanes, other)
		}
	}
	slices.SortFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.id, b.id) })
	for _, in := range append([]*Lane{l}, lanes...) {
		if c := in.collectives.at(in.seq); c != nil && c.Ended.IsZero() {
			return since(c.Began, "it is in %s%s, which began", e.name(c.Call, c.Seq), in.where(l))
		}
	}
	for _, s := range e.stalls {
		if s.op.seq == 0 {
			return since(s.since, "it is in %s%s, which began", s.op.name(), s.op.lane.where(l))
		}
	}
	last := l.collectives.at(l.seq)
	if t := l.transfers.at(l.transfers.last); last == nil || t != nil && t.Began.After(last.Began) {
		last = t
	}
	switch {
	case !l.refused.at.IsZero() && (last == nil || l.refused.at.After(last.Began)):
		return since(l.refused.at, "its last call was refused (%s)", l.refused.text)
	case last == nil:
		return doing{Text: "it has called nothing on the group"}
	case last.Ended.IsZero():
		return since(last.Began, "its last call was %s, started", e.name(last.Call, last.Seq))
	}
	return since(last.Ended, "its last call was %s, which ended", e.name(last.Call, last.Seq))
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
func (e *Endpoint) answered(p *peer, h header, doc []byte) error {
	r := decodeReport(doc, len(e.peers))
	if r == nil {
		return errors.New("sent a report that makes no sense")
	}
	l := e.lanes[h.group]
	if l == nil || l.err != nil {
		return nil
	}
	if l.compare(p.rank, r.At) != nil {
		return nil
	}
	news := false
	for _, s := range e.stalls {
		if s.op.lane == l && s.op.seq == h.seq && s.op.awaited() == p.rank {
			news = news || !r.says(s.heard)
			s.heard, s.when, s.asked = r, time.Now(), time.Time{}
		}
	}
	if news { // for those as well that wait for this rank
		for rank, seq := range l.askers {
			e.answer(e.peers[rank], l, l.id, seq)
		}
	}
	if l.roll != nil && l.roll.seq == h.seq {
		if l.roll.answered(p.rank, r); r.Seq >= h.seq {
			l.roll.found(p.rank)
		}
	}
	return nil
}
