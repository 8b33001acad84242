package call

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

// A Fingerprint is a collective that a rank has begun, as it compares it with other ranks: its number in the group, the call, and what
// travels of the history before it.
type Fingerprint struct {
	Seq    uint64 `json:"seq"`
	Call   Call   `json:"call"`
	Before uint32 `json:"before"`
}
