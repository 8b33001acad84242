package shm

// AllToAll copies block r of in to rank r, where it becomes the block of out whose number is this rank. Blocks are equally long.
func (t *Team) AllToAll(out, in []byte) error {
	if t.isShort(len(in)/t.n, t.n) {
		return t.allToAllLL(out, in)
	}
	each := len(in) / t.n
	there := span{at: t.me * each, n: each} // where this rank's blocks belong in every out
	exported := t.exportBuffer(out, there)
	if places, err := t.attachAll(block(out, t.me, t.n), exported, there); err != nil {
		return err
	} else if places != nil {
		return t.distributeInPlace(places, in, each)
	}
	size, chunks := t.chunking(each, slotPerRank(t.slot, t.n))
	outs, ins := t.blocksOf(out), t.blocksOf(in)
	return t.exchangeBlocks(&outs, &ins, size, chunks, len(out), true, true)
}
