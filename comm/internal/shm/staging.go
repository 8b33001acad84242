package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// Longer buffers move through slots in chunks. A rank fills a slot with each of its chunks, and readers copy chunks out as they come.
// A rank does step filled(i) when it has filled a slot with chunk i, and step readStep(i) when it has read that chunk of the others. It
// fills chunk i+1 before it reads chunk i, so that chunks are there when it comes to them. So its steps are, in this order: filled(0),
// filled(1), readStep(0), filled(2), readStep(1) and so on, or 2, 4, 5, 6, 7. An exported buffer (inplace.go) is read in the same chunks,
// from where it lies, and its rank waits until the last one has been read.

func filled(i int) int   { return 2*i + 2 }
func readStep(i int) int { return 2*i + 5 }

// everybody stands for all other ranks where a rank is expected.
const everybody = -1

// pipeline carries out stages for chunk after chunk. Each stage is one chunk behind the stage before it, and does its own steps.
func (t *Team) pipeline(chunks int, stages ...func(i int) error) error {
	for u := range chunks + len(stages) - 1 {
		if u >= len(stages) { // there are several chunks
			t.moves.Add(1)
		}
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

// Moves is a number that changes while a long operation goes on. Any goroutine may call it.
func (t *Team) Moves() uint64 { return t.moves.Load() }

// countMoved takes note that n bytes have been copied without slots.
func (t *Team) countMoved(n int) {
	if t.moved += n; t.moved >= leastMove {
		t.moved = 0
		t.moves.Add(1)
	}
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
func (t *Team) fromRoot(root, chunks int, exported bool, fill func(i int) error, dst []byte, p span) error {
	switch {
	case t.me != root:
		return t.pipeline(chunks, func(i int) error {
			if err := t.readChunk(dst, root, i, p); err != nil {
				return err
			}
			return t.finishReading(readStep(i))
		})
	case exported:
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

// fillBlocks puts chunk i, of size bytes, of the block for every other rank into this rank's slot, in order of rank.
func (t *Team) fillBlocks(i, size int, blocks *Blocks) error {
	slot, err := t.reserveSlot(i, readStep(i), everybody)
	if err != nil {
		return err
	}
	for r := range t.n {
		if r != t.me {
			t.put(slot[r*size:], cut(blocks.of(r), i, size))
		}
	}
	t.done(filled(i))
	return nil
}

// readBlocks reads chunk i, of size bytes, of every other rank's block from byte from of that rank's slot. whole is the length of what all
// blocks are part of.
func (t *Team) readBlocks(i, size, from, whole int, blocks *Blocks) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		chunk := cut(blocks.of(r), i, size)
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

// copyOut copies src to dst, unless they are the same memory, as part of whole bytes. If so many bytes would evict everything else from
// the caches, it bypasses them.
func (t *Team) copyOut(dst, src []byte, whole int) {
	if t.exceedsCaches(whole) && len(src) > 0 && &dst[0] != &src[0] {
		t.bypass(dst, src)
		return
	}
	move(dst, src)
}

// bypass copies src to dst past the caches.
func (t *Team) bypass(dst, src []byte) {
	for len(src) > 0 {
		n := min(len(src), spreadBlock)
		cpu.CopyNonTemporal(dst[:n], src[:n])
		t.countMoved(n)
		dst, src = dst[n:], src[n:]
	}
}

// move copies src to dst, unless they are the same memory.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		cpu.Copy(dst, src)
	}
}
