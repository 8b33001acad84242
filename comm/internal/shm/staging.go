package shm

// Longer buffers move through slots in chunks. A rank fills a slot with each of its chunks, and readers copy chunks out as they come.
// Step 2i+2 is done when chunk i has been filled, step 2i+5 when it has been read. A rank that does both fills the next chunk before
// it reads one, so that chunks are there when it comes to them. An exported buffer (inplace.go) is read in the same chunks, from
// where it lies, and its rank waits until the last one has been read.

func filled(i int) int   { return 2*i + 2 }
func readStep(i int) int { return 2*i + 5 }

// everybody stands for all other ranks where a rank is expected.
const everybody = -1

// pipeline carries out stages for chunk after chunk. Each stage is one chunk behind the stage before it, and does its own steps.
func (t *Team) pipeline(chunks int, stages ...func(i int) error) error {
	for u := range chunks + len(stages) - 1 {
		for k, stage := range stages {
			if i := u - k; i >= 0 && i < chunks {
				if err := stage(i); err != nil {
					return err
				}
			}
		}
	}
	t.advance(chunks)
	return nil
}

// toRoot is a pipeline in which root, or everybody, reads what the others fill.
func (t *Team) toRoot(root, chunks int, fill, read func(i int) error) error {
	switch root {
	case everybody:
		return t.pipeline(chunks, fill, read)
	case t.me:
		return t.pipeline(chunks, read)
	}
	return t.pipeline(chunks, fill)
}

// fromRoot is a pipeline in which the others read into dst what root fills, or what it exports.
func (t *Team) fromRoot(root, chunks int, exports bool, fill func(i int) error, dst []byte, p span) error {
	switch {
	case t.me != root:
		return t.pipeline(chunks, func(i int) error {
			if err := t.readChunk(dst, root, i, p); err != nil {
				return err
			}
			return t.finishReading(readStep(i))
		})
	case exports:
		t.advance(chunks)
		return nil
	default:
		return t.pipeline(chunks, fill)
	}
}

// fillSlot puts data into this rank's slot as chunk i, for reader.
func (t *Team) fillSlot(i, reader int, data []byte) error {
	slot, err := t.reserveSlot(i, readStep(i), reader)
	if err != nil {
		return err
	}
	t.put(slot, data)
	t.done(filled(i))
	return nil
}

// fillBlocks puts chunk i of the block for every other rank into this rank's slot, in order of rank. Empty blocks get no place there.
func (t *Team) fillBlocks(i, size int, block func(r int) []byte) error {
	slot, err := t.reserveSlot(i, readStep(i), everybody)
	if err != nil {
		return err
	}
	at := 0
	for r := range t.n {
		b := block(r)
		if len(b) == 0 {
			continue
		}
		if r != t.me {
			t.put(cut(slot, at, size), cut(b, i, size))
		}
		at++
	}
	t.done(filled(i))
	return nil
}

// readBlocks reads chunk i of every other rank's block from byte from of that rank's slot. whole is the length of what all blocks are
// part of.
func (t *Team) readBlocks(i, size, from, whole int, block func(r int) []byte) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		chunk := cut(block(r), i, size)
		if len(chunk) == 0 {
			continue
		}
		if err := t.wait(r, filled(i)); err != nil {
			return err
		}
		t.get(chunk, t.slotOf(r, i)[from:], whole)
	}
	t.done(readStep(i))
	return nil
}

// put copies src into this rank's slot. get copies from another rank's slot to dst, which is part of whole bytes.
func (t *Team) put(slot, src []byte) {
	t.write(slot[:len(src)], src)
	t.Sent += uint64(len(src))
}
func (t *Team) get(dst, slot []byte, whole int) {
	t.copyOut(dst, slot[:len(dst)], whole)
	t.Received += uint64(len(dst))
}
