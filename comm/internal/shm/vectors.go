package shm

// The vector variants, as MPI calls them: every rank has a block, and blocks may differ in length. A rank whose block is empty only
// sends, or only receives. Here all ranks know the length of every block; exchange.go has the calls in which they do not.

// AllGatherV copies in of every rank r to block r of outs on all ranks. in may be this rank's block.
func (t *Team) AllGatherV(outs Blocks, in []byte) error {
	longest, whole := outs.lengths(t.n)
	switch {
	case longest == 0:
		return t.Barrier()
	case t.isShort(longest, 1):
		return t.allGatherLL(&outs, in, longest)
	}
	return t.gatherBlocks(&outs, in, everybody, longest, whole)
}

// GatherSlices is GatherV to root if all ranks know all lengths: all pass outs.
func (t *Team) GatherSlices(outs Blocks, in []byte, root int) error {
	longest, whole := outs.lengths(t.n)
	if longest == 0 {
		return t.Barrier()
	}
	return t.gatherBlocks(&outs, in, root, longest, whole)
}

// gatherBlocks copies blocks to root, or to everybody, through slots. The longest one, and whole in all, are so many bytes.
func (t *Team) gatherBlocks(outs *Blocks, in []byte, root, longest, whole int) error {
	size, chunks := t.chunking(longest, t.slot)
	t.layOut(size)
	return t.toRoot(root, chunks, func(i int) error {
		chunk := cut(in, i, size)
		if len(chunk) == 0 {
			t.done(filled(i))
			return nil
		}
		if err := t.fillSlot(i, root, chunk); err != nil {
			return err
		}
		if root == everybody {
			t.copyOut(cut(outs.of(t.me), i, size), chunk, whole)
		}
		return nil
	}, func(i int) error { return t.readBlocks(i, size, 0, whole, outs) })
}

// ReduceScatterV combines ins of all ranks, block by block, and leaves block r of the result in out of rank r. out may be this rank's
// block.
func (t *Team) ReduceScatterV(out []byte, ins Blocks, red *Reduction) error {
	longest, _ := ins.lengths(t.n)
	switch {
	case longest == 0:
		return t.Barrier()
	case t.isShort(longest, t.n):
		return t.reduceScatterLL(out, &ins, longest, red)
	}
	return t.reduceBlocks(out, &ins, longest, red)
}

// reduceBlocks is ReduceScatterV through slots.
func (t *Team) reduceBlocks(out []byte, ins *Blocks, longest int, red *Reduction) error {
	size, chunks := t.chunkingOf(longest, slotPerRank(t.slot, t.n), red.Elem)
	t.layOut(t.n * size)
	return t.pipeline(chunks, func(i int) error {
		return t.fillBlocks(i, size, ins)
	}, func(i int) error {
		return t.foldChunk(red, cut(out, i, size), cut(ins.of(t.me), i, size), i, t.me*size, true)
	})
}
