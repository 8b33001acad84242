package shm

import "github.com/gorun/gorun/comm/internal/plan"

// The vector variants, as MPI calls them: rank r has slice r of a buffer. Slices may differ in length. A rank whose slice is empty only
// sends, or only receives. Lengths are in bytes.

// ReduceScatterV combines in of all ranks, slice by slice, and leaves slice r of the result in its place in out of rank r. out may be in.
func (t *Team) ReduceScatterV(out, in []byte, slices []plan.Range, red Reduction) error {
	longest, owners := longestOf(slices)
	if longest == 0 {
		return t.Barrier()
	}
	_, before := longestOf(slices[:t.me])
	result, own := rangeOf(out, slices[t.me]), rangeOf(in, slices[t.me])
	size, chunks := t.chunkingOf(longest, slotPerRank(t.slot, owners), red.Elem)
	t.layOut(owners * size)
	return t.pipeline(chunks, func(i int) error {
		return t.fillBlocks(i, size, func(r int) []byte { return rangeOf(in, slices[r]) })
	}, func(i int) error {
		return t.foldChunk(red, cut(result, i, size), cut(own, i, size), i, before*size, true)
	})
}

// AllGatherV copies slice r of buf of rank r to buf of all ranks.
func (t *Team) AllGatherV(buf []byte, slices []plan.Range) error {
	return t.gatherSlices(buf, slices, everybody)
}

// GatherV copies slice r of buf of rank r to buf of rank root.
func (t *Team) GatherV(buf []byte, slices []plan.Range, root int) error {
	return t.gatherSlices(buf, slices, root)
}

// gatherSlices is AllGatherV, or GatherV to one root.
func (t *Team) gatherSlices(buf []byte, slices []plan.Range, root int) error {
	longest, _ := longestOf(slices)
	if longest == 0 {
		return t.Barrier()
	}
	size, chunks := t.chunking(longest, t.slot)
	t.layOut(size)
	return t.toRoot(root, chunks, func(i int) error {
		if chunk := cut(rangeOf(buf, slices[t.me]), i, size); len(chunk) > 0 {
			return t.fillSlot(i, root, chunk)
		}
		t.done(filled(i))
		return nil
	}, func(i int) error {
		return t.readBlocks(i, size, 0, longest, func(r int) []byte { return rangeOf(buf, slices[r]) })
	})
}

func rangeOf(buf []byte, r plan.Range) []byte { return buf[r.Lo:r.Hi] }

// longestOf returns the length of the longest slice, and how many slices are not empty.
func longestOf(slices []plan.Range) (longest, count int) {
	for _, s := range slices {
		if s.Len() > 0 {
			longest, count = max(longest, s.Len()), count+1
		}
	}
	return longest, count
}
