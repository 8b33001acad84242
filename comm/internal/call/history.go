package call

// A History is a digest of the collectives that a rank has called on a group, one after the other: ranks that have
// called the same have the same. Ranks that have not have different ones from then on, whatever they call later, but
// for one chance in 2^64. Of its 64 bits the upper half travels.
type History struct {
	digest uint64
	last   Packed // the call that has been added last
	mixed  uint64
}

// Digest is the history as a number.
func (h *History) Digest() uint64 { return h.digest }

// Add adds call p, and returns it with the history before it.
func (h *History) Add(p Packed) Packed {
	if p != h.last { // to compare takes less time than to mix
		h.last, h.mixed = p, p.mix()
	}
	p.RootAndBefore |= h.digest &^ (1<<32 - 1)
	h.digest = (h.digest ^ h.mixed) * 0x9e3779b97f4a7c15
	return p
}

// mix is a number in which every bit of p counts.
func (p Packed) mix() uint64 {
	h := p.What*0xbf58476d1ce4e5b9 ^ p.RootAndBefore*0xff51afd7ed558ccd ^ p.Count*0xc4ceb9fe1a85ec53
	return h ^ h>>32
}

// Before is what travels of the history before a call that Add has returned.
func (p Packed) Before() uint32 { return uint32(p.RootAndBefore >> 32) }

// A Fingerprint is a collective that a rank has begun, as it compares it with other ranks: its number in the group, the
// call, and what travels of the history before it.
type Fingerprint struct {
	Seq    uint64 `json:"seq"`
	Call   Call   `json:"call"`
	Before uint32 `json:"before"`
}
