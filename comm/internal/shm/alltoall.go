package shm

// AllToAll copies block r of in to rank r, where it becomes the block of out whose number is this rank. Blocks are equally long.
func (t *Team) AllToAll(out, in []byte) error {
	each := len(in) / t.n
	if t.isShort(each, t.n) {
		return t.allToAllLL(out, in, each)
	}
	outs, ins := equal(out, each), equal(in, each)
	there := span{at: t.me * each, n: each} // where this rank's blocks belong in every out
	exported := t.exportBuffer(out, there)
	if places, err := t.attachAll(outs.of(t.me), exported, there); err != nil {
		return err
	} else if places != nil {
		return t.distributeInPlace(places, in, each)
	}
	size, chunks := t.chunking(each, slotPerRank(t.slot, t.n))
	return t.exchangeBlocks(&outs, &ins, size, chunks, len(out), true, true)
}
