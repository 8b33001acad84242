package shm

// Broadcast copies buf of rank root to buf of all ranks.
func (t *Team) Broadcast(buf []byte, root int) error {
	if t.isShort(len(buf), 1) {
		return t.broadcastLL(buf, root)
	}
	size, chunks := t.chunking(len(buf), t.slot)
	t.layOut(size)
	whole := span{n: len(buf), size: size}
	exported := (t.me != root || !t.rootUsesSlots(len(buf))) && t.exportBuffer(buf, whole)
	if bufs, err := t.attachAllIf(root, buf, exported, whole); err != nil {
		return err
	} else if bufs != nil {
		return t.broadcastInPlace(bufs, root)
	}
	fill := func(i int) error { return t.fillSlot(i, everybody, cut(buf, i, size)) }
	if err := t.fromRoot(root, chunks, exported, fill, buf, whole); err != nil {
		return err
	}
	return t.awaitAll(exported && t.me == root, readStep(chunks-1))
}

// Scatter cuts in of rank root into equal blocks and copies block r to out of rank r. On the root, out may be its own block of in.
func (t *Team) Scatter(out, in []byte, root int) error {
	if t.isShort(len(out), t.n) {
		return t.scatterLL(out, in, root)
	}
	size, chunks := t.chunking(len(out), slotPerRank(t.slot, t.n))
	t.layOut(t.n * size)
	own := span{at: t.me * len(out), n: len(out), size: size, slot: t.me * size}
	exported := t.me == root && t.exportBuffer(in, own)
	ins := equal(in, len(out))
	fill := func(i int) error { return t.fillBlocks(i, size, &ins) }
	if err := t.fromRoot(root, chunks, exported, fill, out, own); err != nil {
		return err
	}
	if t.me == root {
		t.copyOut(out, block(in, root, t.n), len(out))
	}
	return t.awaitAll(exported, readStep(chunks-1))
}
