package shm

import "github.com/gorun/gorun/comm/internal/plan"

// Operations on vectors that are cut into parts, one for each rank, of any lengths in bytes. Parts may be none: those who have
// none only give, or only take.

// ReduceParts combines buf of all ranks, part by part, and leaves part r of the result in its place on rank r.
func (t *Team) ReduceParts(buf []byte, parts []plan.Range, red Reduction) error {
	longest, owners := longestOf(parts)
	if longest == 0 {
		return t.Barrier()
	}
	_, before := longestOf(parts[:t.me])
	own := rangeOf(buf, parts[t.me])
	size, chunks := t.values(longest, partOf(t.slot, owners), red.Elem)
	t.lay(owners * size)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, taken(u), everybody)
			if err != nil {
				return err
			}
			at := 0
			for r, part := range parts {
				if part.Len() == 0 {
					continue
				}
				if r != t.me {
					t.put(cut(slot, at, size), cut(rangeOf(buf, part), u, size))
				}
				at++
			}
			t.done(filled(u))
		}
		if u == 0 {
			continue
		}
		if piece := cut(own, u-1, size); len(piece) > 0 {
			sources, err := t.gatherSources(piece, u-1, before*size, filled(u-1))
			if err != nil {
				return err
			}
			t.fold(red, piece, nil, sources)
		}
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// ShareParts copies part r of buf of rank r to that of all ranks.
func (t *Team) ShareParts(buf []byte, parts []plan.Range) error {
	return t.takeParts(buf, parts, everybody)
}

// GatherParts copies part r of buf of rank r to that of rank root.
func (t *Team) GatherParts(buf []byte, parts []plan.Range, root int) error {
	return t.takeParts(buf, parts, root)
}

func (t *Team) takeParts(buf []byte, parts []plan.Range, root int) error {
	longest, _ := longestOf(parts)
	if longest == 0 {
		return t.Barrier()
	}
	size, chunks := t.pieces(longest, t.slot)
	t.lay(size)
	for u := range chunks + 1 {
		if piece := cut(rangeOf(buf, parts[t.me]), u, size); len(piece) > 0 && root != t.me {
			slot, err := t.own(u, taken(u), root)
			if err != nil {
				return err
			}
			t.put(slot, piece)
		}
		if u < chunks {
			t.done(filled(u))
		}
		if u == 0 {
			continue
		}
		for d := 1; d < t.n; d++ {
			r := (t.me + d) % t.n
			piece := cut(rangeOf(buf, parts[r]), u-1, size)
			if len(piece) == 0 || root != everybody && root != t.me {
				continue
			}
			if err := t.wait(r, filled(u-1)); err != nil {
				return err
			}
			t.get(piece, t.slotOf(r, u-1), parts[r].Len())
		}
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// rangeOf is part of buf.
func rangeOf(buf []byte, part plan.Range) []byte { return buf[part.Lo:part.Hi] }

// longestOf is how long the longest of parts is, and how many are not empty.
func longestOf(parts []plan.Range) (longest, count int) {
	for _, p := range parts {
		if p.Len() > 0 {
			longest, count = max(longest, p.Len()), count+1
		}
	}
	return longest, count
}
