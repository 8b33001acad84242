package shm

// Longer buffers move through slots in chunks. A rank fills a slot with each of its chunks; readers copy chunks out as they come.
// Step 2i+2 is done when chunk i has been filled, step 2i+5 when it has been taken. A rank that does both fills the next chunk
// before it takes one: so chunks are there when it comes to them. An exported buffer (inplace.go) is taken in the same chunks, from
// where it lies, and its rank waits until the last one has been taken.

func filled(i int) int { return 2*i + 2 }
func taken(i int) int  { return 2*i + 5 }

// everybody stands for all other ranks where one could be meant.
const everybody = -1

// pipeline fills and takes so many chunks. It fills chunk i+1 before it takes chunk i; fill does step filled(i) itself.
func (t *Team) pipeline(chunks int, fill, take func(i int) error) error {
	for u := range chunks + 1 {
		if u < chunks {
			if err := fill(u); err != nil {
				return err
			}
		}
		if u == 0 {
			continue
		}
		if err := take(u - 1); err != nil {
			return err
		}
		t.done(taken(u - 1))
	}
	t.advance(chunks)
	return nil
}

// toRoot is a pipeline in which root takes what the others fill.
func (t *Team) toRoot(root, chunks int, fill, take func(i int) error) error {
	for i := range chunks {
		if t.me != root {
			if err := fill(i); err != nil {
				return err
			}
			continue
		}
		if err := take(i); err != nil {
			return err
		}
		t.done(taken(i))
	}
	t.advance(chunks)
	return nil
}

// fromRoot is a pipeline in which the others take to dst what root fills, or what it exports.
func (t *Team) fromRoot(root, chunks int, exports bool, fill func(i int) error, dst []byte, p span) error {
	for i := range chunks {
		if t.me != root {
			if err := t.takeChunk(dst, root, i, p); err != nil {
				return err
			}
			if err := t.finishReading(taken(i)); err != nil {
				return err
			}
			continue
		}
		if exports {
			break
		}
		if err := fill(i); err != nil {
			return err
		}
	}
	t.advance(chunks)
	return nil
}

// fillSlot puts data into this rank's slot as chunk i, for reader.
func (t *Team) fillSlot(i, reader int, data []byte) error {
	slot, err := t.reserveSlot(i, taken(i), reader)
	if err != nil {
		return err
	}
	t.put(slot, data)
	t.done(filled(i))
	return nil
}

// dealSlot puts chunk i of every other rank's block of in into this rank's slot as chunk i, where that rank looks for it.
func (t *Team) dealSlot(i int, in []byte, size int) error {
	slot, err := t.reserveSlot(i, taken(i), everybody)
	if err != nil {
		return err
	}
	for r := range t.n {
		if r != t.me {
			t.put(cut(slot, r, size), cut(block(in, r, t.n), i, size))
		}
	}
	t.done(filled(i))
	return nil
}

// collect takes chunk i, of so many bytes, from every other rank's slot to its block of out. It begins at byte from there.
func (t *Team) collect(out []byte, i, size, from int) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.wait(r, filled(i)); err != nil {
			return err
		}
		t.get(cut(block(out, r, t.n), i, size), t.slotOf(r, i)[from:], len(out))
	}
	return nil
}

// put copies src into this rank's slot, get copies what is in another one's, to be part of whole bytes.
func (t *Team) put(slot, src []byte) {
	t.write(slot[:len(src)], src)
	t.Sent += uint64(len(src))
}
func (t *Team) get(dst, slot []byte, whole int) {
	t.copyOut(dst, slot[:len(dst)], whole)
	t.Received += uint64(len(dst))
}
