package diagnosis

import (
	"slices"
	"time"
)

// Missing are the members of a group that are not known to have come to a collective.
type Missing struct {
	Seq   uint64 // the collective
	Ranks []int
	waits map[int]Wait // of those that do not come because they wait elsewhere; For is who is at the end of that
}

// Reported takes in r, in which rank, a member, says what it does.
func (m *Missing) Reported(rank int, r *Report) {
	i := slices.Index(m.Ranks, rank)
	if i < 0 {
		return
	}
	delete(m.waits, rank)
	switch {
	case r.Seq >= m.Seq:
		m.Ranks = slices.Delete(m.Ranks, i, i+1)
	case len(r.Chain) > 0 && r.Suspect != nil && r.Suspect.Rank >= 0 && r.Suspect.Rank != rank:
		if m.waits == nil {
			m.waits = map[int]Wait{}
		}
		m.waits[rank] = Wait{Rank: rank, For: r.Suspect.Rank, In: r.Chain[0].In}
	}
}

// Failure is that of the collective, what, which has waited for so long. At fault is a rank that does not wait itself, if there is one.
func (m *Missing) Failure(what string, after time.Duration) *Failure {
	slices.Sort(m.Ranks)
	f := &Failure{
		Kind: Absent, Rank: m.Ranks[0], Text: what, Missing: m.Ranks, Late: true, After: after, Err: ErrTimeout,
	}
	for _, rank := range slices.Backward(m.Ranks) {
		if w, waits := m.waits[rank]; waits {
			f.Waits = append(f.Waits, w)
		} else {
			f.Rank = rank
		}
	}
	slices.Reverse(f.Waits)
	return f
}
