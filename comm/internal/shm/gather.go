package shm

// Gather copies in of every rank r to block r of out of rank root; the blocks are equally long. On the root, in may be its own block of out.
func (t *Team) Gather(out, in []byte, root int) error {
	if t.isShort(len(in), 1) {
		return t.gatherLL(out, in, root)
	}
	size, chunks := t.chunking(len(in), t.slot)
	t.layOut(size)
	there := span{at: t.me * len(in), n: len(in), size: size} // where in belongs in out
	exported := t.exportToRoot(out, in, root, there)
	if exported && t.me != root {
		if to, err := t.attach(root, there); err != nil {
			return err
		} else if to != nil {
			t.advance(chunks)
			t.push(to, in, t.exceedsCaches(len(in)*t.n))
			if err := t.finishReading(readStep(chunks - 1)); err != nil {
				return err
			}
			return t.wait(root, readStep(chunks-1)) // root has to notice first
		}
	}
	err := t.toRoot(root, chunks, func(i int) error {
		return t.fillSlot(i, root, cut(in, i, size))
	}, func(i int) error {
		for d := 1; d < t.n; d++ {
			r := (root + d) % t.n
			if pushes, err := t.waitPushed(r, i, exported); err != nil {
				return err
			} else if pushes {
				continue
			}
			if err := t.wait(r, filled(i)); err != nil {
				return err
			}
			t.get(cut(block(out, r, t.n), i, size), t.slotOf(r, i), len(in))
		}
		t.done(readStep(i))
		return nil
	})
	if err == nil && t.me == root {
		t.copyOut(block(out, root, t.n), in, len(in))
	}
	return err
}

// AllGather is a Gather to every rank.
func (t *Team) AllGather(out, in []byte) error {
	outs := equal(out, len(in))
	if t.isShort(len(in), 1) {
		return t.allGatherLL(&outs, in, len(in))
	}
	there := span{at: t.me * len(in), n: len(in)} // where in belongs in every out
	exported := t.exportBuffer(out, there)
	if places, err := t.attachAll(outs.of(t.me), exported, there); err != nil {
		return err
	} else if places != nil {
		return t.distributeInPlace(places, in, 0)
	}
	return t.gatherBlocks(&outs, in, everybody, len(in), len(out))
}
