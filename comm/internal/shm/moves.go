package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// Barrier returns when all ranks have called it. A few ranks read empty LL messages from each other. If there are many, they use a
// dissemination barrier (Hensgen, Finkel and Manber 1988): in round k every rank signals the one 2^k further on, so no rank waits for
// more than log2(n) others.
func (t *Team) Barrier() error {
	if t.n <= mostLLBarrier {
		return t.allGatherLL(nil, nil)
	}
	for k, distance := 0, 1; distance < t.n; k, distance = k+1, 2*distance {
		t.done(k + 1)
		if err := t.wait((t.me-distance+t.n)%t.n, k+1); err != nil {
			return err
		}
	}
	return nil
}

// Broadcast copies buf of rank root to buf of all ranks.
func (t *Team) Broadcast(buf []byte, root int) error {
	if fitsLL(len(buf), 1) {
		return t.broadcastLL(buf, root)
	}
	size, chunks := t.chunking(len(buf), t.slot)
	t.layOut(size)
	whole := span{n: len(buf), size: size}
	mine := (t.me != root || !t.rootUsesSlots(len(buf))) && t.exportBuffer(buf, whole)
	if bufs, err := t.attachAllIf(root, buf, mine, whole); err != nil {
		return err
	} else if bufs != nil {
		return t.broadcastInPlace(bufs, root)
	}
	fill := func(i int) error { return t.fillSlot(i, everybody, cut(buf, i, size)) }
	if err := t.fromRoot(root, chunks, mine, fill, buf, whole); err != nil {
		return err
	}
	return t.awaitAll(mine && t.me == root, readStep(chunks-1))
}

// Gather copies in of every rank r to block r of out of rank root; the blocks are equally long. On the root, in may be its own block of out.
func (t *Team) Gather(out, in []byte, root int) error {
	if fitsLL(len(in), 1) {
		return t.gatherLL(out, in, root)
	}
	size, chunks := t.chunking(len(in), t.slot)
	t.layOut(size)
	there := span{at: t.me * len(in), n: len(in), size: size} // where in belongs in out
	mine := t.exportToRoot(out, in, root, there)
	if mine && t.me != root {
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
			if pushes, err := t.waitPushed(r, i, mine); err != nil {
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

// Scatter cuts in of rank root into equal blocks and copies block r to out of rank r. On the root, out may be its own block of in.
func (t *Team) Scatter(out, in []byte, root int) error {
	if fitsLL(len(out), t.n) {
		return t.scatterLL(out, in, root)
	}
	size, chunks := t.chunking(len(out), slotPerRank(t.slot, t.n))
	t.layOut(t.n * size)
	own := span{at: t.me * len(out), n: len(out), size: size, slot: t.me * size}
	mine := t.me == root && t.exportBuffer(in, own)
	fill := func(i int) error { return t.fillBlocks(i, size, t.blocksOf(in)) }
	if err := t.fromRoot(root, chunks, mine, fill, out, own); err != nil {
		return err
	}
	if t.me == root {
		t.copyOut(out, block(in, root, t.n), len(out))
	}
	return t.awaitAll(mine, readStep(chunks-1))
}

// AllGather is a Gather to every rank.
func (t *Team) AllGather(out, in []byte) error {
	if fitsLL(len(in), 1) {
		return t.allGatherLL(out, in)
	}
	there := span{at: t.me * len(in), n: len(in)} // where in belongs in every out
	if places, err := t.attachAll(block(out, t.me, t.n), t.exportBuffer(out, there), there); err != nil {
		return err
	} else if places != nil {
		return t.distributeInPlace(places, in, 0)
	}
	size, chunks := t.chunking(len(in), t.slot)
	t.layOut(size)
	return t.pipeline(chunks, func(i int) error {
		chunk := cut(in, i, size)
		if err := t.fillSlot(i, everybody, chunk); err != nil {
			return err
		}
		t.copyOut(cut(block(out, t.me, t.n), i, size), chunk, len(out))
		return nil
	}, func(i int) error { return t.readBlocks(i, size, 0, len(out), t.blocksOf(out)) })
}

// AllToAll copies block r of in to rank r, where it becomes the block of out whose number is this rank. Blocks are equally long.
func (t *Team) AllToAll(out, in []byte) error {
	if fitsLL(len(in)/t.n, t.n) {
		return t.allToAllLL(out, in)
	}
	each := len(in) / t.n
	there := span{at: t.me * each, n: each} // where this rank's blocks belong in every out
	if places, err := t.attachAll(block(out, t.me, t.n), t.exportBuffer(out, there), there); err != nil {
		return err
	} else if places != nil {
		return t.distributeInPlace(places, in, each)
	}
	size, chunks := t.chunking(each, slotPerRank(t.slot, t.n))
	t.layOut(t.n * size)
	return t.pipeline(chunks, func(i int) error {
		if err := t.fillBlocks(i, size, t.blocksOf(in)); err != nil {
			return err
		}
		t.copyOut(cut(block(out, t.me, t.n), i, size), cut(block(in, t.me, t.n), i, size), len(out))
		return nil
	}, func(i int) error { return t.readBlocks(i, size, t.me*size, len(out), t.blocksOf(out)) })
}

// cut is the i'th chunk of buf, of size bytes. The last one may be shorter, and chunks after the end are empty.
func cut(buf []byte, i, size int) []byte {
	from := min(i*size, len(buf))
	return buf[from:min(from+size, len(buf))]
}

// block is the r'th of n equal blocks of buf.
func block(buf []byte, r, n int) []byte {
	size := len(buf) / n
	return buf[r*size : (r+1)*size]
}

// blocksOf returns the equal blocks of buf, by rank.
func (t *Team) blocksOf(buf []byte) func(r int) []byte {
	return func(r int) []byte { return block(buf, r, t.n) }
}

// copyOut copies src to dst, unless they are the same memory, as part of whole bytes. If so many bytes would evict everything else from
// the caches, it bypasses them.
func (t *Team) copyOut(dst, src []byte, whole int) {
	if t.exceedsCaches(whole) && len(src) > 0 && &dst[0] != &src[0] {
		cpu.CopyNonTemporal(dst, src)
		return
	}
	move(dst, src)
}

// move copies src to dst, unless they are the same memory.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		cpu.Copy(dst, src)
	}
}
