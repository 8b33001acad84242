package shm

import "github.com/gorun/gorun/comm/internal/plan"

// Operations on vectors with a part for each rank, of any length in bytes. A part may be empty: its rank only sends, or only receives.

// ReduceParts combines buf of all ranks, part by part, and leaves part r of the result in its place on rank r.
func (t *Team) ReduceParts(buf []byte, parts []plan.Range, red Reduction) error {
	longest, owners := longestOf(parts)
	if longest == 0 {
		return t.Barrier()
	}
	_, before := longestOf(parts[:t.me])
	own := rangeOf(buf, parts[t.me])
	size, chunks := t.chunkingOf(longest, slotShareOf(t.slot, owners), red.Elem)
	t.layOut(owners * size)
	return t.pipeline(chunks, func(i int) error {
		slot, err := t.reserveSlot(i, taken(i), everybody)
		if err != nil {
			return err
		}
		at := 0
		for r, part := range parts {
			if part.Len() == 0 {
				continue
			}
			if r != t.me {
				t.put(cut(slot, at, size), cut(rangeOf(buf, part), i, size))
			}
			at++
		}
		t.done(filled(i))
		return nil
	}, func(i int) error {
		chunk := cut(own, i, size)
		if len(chunk) == 0 {
			return nil
		}
		return t.foldChunk(red, chunk, chunk, i, before*size)
	})
}

// ShareParts copies part r of buf of rank r to that of all ranks.
func (t *Team) ShareParts(buf []byte, parts []plan.Range) error {
	return t.takeParts(buf, parts, everybody)
}

// GatherParts copies part r of buf of rank r to that of rank root.
func (t *Team) GatherParts(buf []byte, parts []plan.Range, root int) error {
	return t.takeParts(buf, parts, root)
}

// takeParts is ShareParts, or GatherParts for one root.
func (t *Team) takeParts(buf []byte, parts []plan.Range, root int) error {
	longest, _ := longestOf(parts)
	if longest == 0 {
		return t.Barrier()
	}
	size, chunks := t.chunking(longest, t.slot)
	t.layOut(size)
	return t.pipeline(chunks, func(i int) error {
		if chunk := cut(rangeOf(buf, parts[t.me]), i, size); len(chunk) > 0 && root != t.me {
			return t.fillSlot(i, root, chunk)
		}
		t.done(filled(i))
		return nil
	}, func(i int) error {
		if root != everybody && root != t.me {
			return nil
		}
		for d := 1; d < t.n; d++ {
			r := (t.me + d) % t.n
			chunk := cut(rangeOf(buf, parts[r]), i, size)
			if len(chunk) == 0 {
				continue
			}
			if err := t.wait(r, filled(i)); err != nil {
				return err
			}
			t.get(chunk, t.slotOf(r, i), parts[r].Len())
		}
		return nil
	})
}

// rangeOf is that part of buf.
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
