package endpoint

// A History is a digest of the collectives that a rank has called on a group, one after the other: ranks that have called the same
// have the same. Ranks that have not have different ones from then on, whatever they call later, but for one chance in 2^64.
// Of its 64 bits the upper half travels.
type History struct {
	digest uint64
	last   Words // the call that has been added last
	mixed  uint64
}

// Digest is the history as a number.
func (h *History) Digest() uint64 { return h.digest }

// Add adds call w, and returns it with the history before it.
func (h *History) Add(w Words) Words {
	if w != h.last { // which is sooner seen than mixed
		h.last, h.mixed = w, w.mix()
	}
	w.RootAndBefore |= h.digest &^ (1<<32 - 1)
	h.digest = (h.digest ^ h.mixed) * 0x9e3779b97f4a7c15
	return w
}

// mix is a number in which every bit of w counts.
func (w Words) mix() uint64 {
	h := w.What*0xbf58476d1ce4e5b9 ^ w.RootAndBefore*0xff51afd7ed558ccd ^ w.Count*0xc4ceb9fe1a85ec53
	return h ^ h>>32
}

// Before is what travels of the history before a call that Add has returned.
func (w Words) Before() uint32 { return uint32(w.RootAndBefore >> 32) }

// A called is a collective that a rank has begun: its number in the group, the call, and what travels of the history before it.
type called struct {
	Seq    uint64 `json:"seq"`
	Call   Call   `json:"call"`
	Before uint32 `json:"before"`
}

func (h *header) called() called { return called{h.seq, h.call, h.before} }
func (l *Lane) called() called   { return called{l.seq, l.call, l.before} }
func (r *Record) called() called { return called{r.Seq, r.Call, r.Before} }

// compare fails the lane if source, which has begun c, has made other calls than this rank. What this rank does not remember, or has
// not come to, it cannot tell. The mutex is held.
func (l *Lane) compare(source int, c called) error {
	mine := l.called()
	if c.Seq < l.seq {
		r := l.collectives.at(c.Seq)
		if r == nil {
			return nil
		}
		mine = r.called()
	}
	if c.Seq > l.seq {
		return nil
	}
	if c != mine {
		f := l.mismatch(source, c)
		l.fail(f, -1)
		return f
	}
	l.ep.peers[source].agreed = agreed{l, c.Seq}
	return nil
}

// agreed is up to which collective a peer's calls are known to be this rank's, in the lane in which it was seen last that they are.
type agreed struct {
	lane *Lane
	seq  uint64
}

// mismatch is the failure of a lane in which source has called c while this rank called something else, then or before.
func (l *Lane) mismatch(source int, c called) *Failure {
	mine := l.called()
	if r := l.collectives.at(c.Seq); r != nil {
		mine = r.called()
	}
	f := &Failure{
		Kind: Mismatched, Rank: source, Text: "called something else", Earlier: mine.Seq == c.Seq && mine.Before != c.Before,
		Calls: []RankCall{{Rank: l.ep.rank, Seq: mine.Seq, Call: mine.Call}, {Rank: source, Seq: c.Seq, Call: c.Call}},
	}
	if p := l.ep.peers[source]; p.agreed.lane == l {
		f.Agreed = p.agreed.seq
	}
	return f
}
