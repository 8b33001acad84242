package shm

// Operations on vectors that are cut into parts, one for each rank, of any lengths. Parts may be none: those who have none
// only give, or only take.

// ReduceParts combines in of all ranks, part by part, and leaves part r of the result in out of rank r. out may be this rank's
// part of in.
func (t *Team) ReduceParts(out []byte, in [][]byte, red Reduction) error {
	longest, owners := longestOf(in)
	if longest == 0 {
		return t.Barrier()
	}
	_, before := longestOf(in[:t.me])
	size, chunks := t.values(longest, partOf(t.slot, owners), red.Elem)
	t.lay(owners * size)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, taken(u), everybody)
			if err != nil {
				return err
			}
			at := 0
			for r, part := range in {
				if len(part) == 0 {
					continue
				}
				if r != t.me {
					t.put(cut(slot, at, size), cut(part, u, size))
				}
				at++
			}
			t.done(filled(u))
		}
		if u == 0 {
			continue
		}
		if piece := cut(in[t.me], u-1, size); len(piece) > 0 {
			sources, err := t.gatherSources(piece, u-1, before*size, filled(u-1))
			if err != nil {
				return err
			}
			t.fold(red, cut(out, u-1, size), nil, sources)
		}
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// ShareParts copies part r of rank r to part r of all ranks.
func (t *Team) ShareParts(parts [][]byte) error { return t.takeParts(parts, everybody) }

// GatherParts copies part r of rank r to part r of rank root.
func (t *Team) GatherParts(parts [][]byte, root int) error { return t.takeParts(parts, root) }

func (t *Team) takeParts(parts [][]byte, root int) error {
	longest, _ := longestOf(parts)
	if longest == 0 {
		return t.Barrier()
	}
	size, chunks := t.pieces(longest, t.slot)
	t.lay(size)
	for u := range chunks + 1 {
		if piece := cut(parts[t.me], u, size); len(piece) > 0 && root != t.me {
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
			piece := cut(parts[r], u-1, size)
			if len(piece) == 0 || root != everybody && root != t.me {
				continue
			}
			if err := t.wait(r, filled(u-1)); err != nil {
				return err
			}
			t.get(piece, t.slotOf(r, u-1), len(parts[r]))
		}
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// longestOf is how long the longest of parts is, and how many are not empty.
func longestOf(parts [][]byte) (longest, count int) {
	for _, p := range parts {
		if len(p) > 0 {
			longest, count = max(longest, len(p)), count+1
		}
	}
	return longest, count
}
