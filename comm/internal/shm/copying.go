package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// An operation moves its data in chunks. A rank that others read from fills a slot with each; readers copy chunks out as
// they come. Step 2i+2 is done when chunk i has been filled, step 2i+5 when it has been taken: a rank that does both fills
// the next chunk before it takes one, so that there is something to take when it comes to it. What a rank shows (direct.go)
// is taken in the same pieces, from where it is, and the rank waits until the last one has been.

func filled(i int) int { return 2*i + 2 }
func taken(i int) int  { return 2*i + 5 }

// everybody stands for all other ranks where one could be meant.
const everybody = -1

// Barrier returns when all ranks have called it. A few ranks read empty letters from each other. If there are many, then in
// round k every rank tells the one 2^k further on that it has come, and all that it has heard of (dissemination; Hensgen,
// Finkel and Manber 1988): nobody waits for more than log2(n) others.
func (t *Team) Barrier() error {
	if isFlat(t.n) {
		return t.shortAllGather(nil, nil)
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
	if isShort(len(buf), 1) {
		return t.shortBroadcast(buf, root)
	}
	size, chunks := t.pieces(len(buf), t.slot)
	t.lay(size)
	whole := part{n: len(buf), size: size}
	mine := (t.me != root || !t.leaves(len(buf))) && t.show(buf, whole)
	if bufs, err := t.everyonesIf(root, buf, mine, whole); err != nil {
		return err
	} else if bufs != nil {
		return t.spread(bufs, root)
	}
	for i := range chunks {
		if t.me != root {
			if err := t.take(buf, root, i, whole); err != nil {
				return err
			}
			if err := t.used(taken(i)); err != nil {
				return err
			}
			continue
		}
		if mine {
			break
		}
		piece := cut(buf, i, size)
		slot, err := t.own(i, taken(i), everybody)
		if err != nil {
			return err
		}
		t.put(slot, piece)
		t.done(filled(i))
	}
	t.passed(chunks)
	return t.release(mine && t.me == root, taken(chunks-1))
}

// Gather copies in of every rank r to the r'th of the equal blocks of out of rank root. There in may be its block of out.
func (t *Team) Gather(out, in []byte, root int) error {
	if isShort(len(in), 1) {
		return t.shortGather(out, in, root)
	}
	size, chunks := t.pieces(len(in), t.slot)
	t.lay(size)
	there := part{at: t.me * len(in), n: len(in), size: size} // where in belongs in out
	mine := t.showToRoot(out, in, root, there)
	if mine && t.me != root {
		if to, err := t.look(root, there); err != nil {
			return err
		} else if to != nil {
			t.passed(chunks)
			t.push(to, in, t.outgrows(len(in)*t.n))
			if err := t.used(taken(chunks - 1)); err != nil {
				return err
			}
			return t.wait(root, taken(chunks-1)) // it has to notice
		}
	}
	for i := range chunks {
		if t.me != root {
			slot, err := t.own(i, taken(i), root)
			if err != nil {
				return err
			}
			t.put(slot, cut(in, i, size))
			t.done(filled(i))
			continue
		}
		for d := 1; d < t.n; d++ {
			r := (root + d) % t.n
			if pushes, err := t.pushes(r, i, mine); err != nil {
				return err
			} else if pushes {
				continue
			}
			if err := t.wait(r, filled(i)); err != nil {
				return err
			}
			t.get(cut(block(out, r, t.n), i, size), t.slotOf(r, i), len(in))
		}
		t.done(taken(i))
	}
	if t.me == root {
		t.carry(block(out, root, t.n), in, len(in))
	}
	t.passed(chunks)
	return nil
}

// Scatter copies the r'th of the equal blocks of in of rank root to out of every rank r. There out may be its block of in.
func (t *Team) Scatter(out, in []byte, root int) error {
	if isShort(len(out), t.n) {
		return t.shortScatter(out, in, root)
	}
	size, chunks := t.pieces(len(out), t.part())
	t.lay(t.n * size)
	own := part{at: t.me * len(out), n: len(out), size: size, slot: t.me * size}
	mine := t.me == root && t.show(in, own)
	for i := range chunks {
		if t.me != root {
			if err := t.take(out, root, i, own); err != nil {
				return err
			}
			if err := t.used(taken(i)); err != nil {
				return err
			}
			continue
		}
		if mine {
			break
		}
		slot, err := t.own(i, taken(i), everybody)
		if err != nil {
			return err
		}
		t.deal(slot, in, i, size)
		t.done(filled(i))
	}
	if t.me == root {
		t.carry(out, block(in, root, t.n), len(out))
	}
	t.passed(chunks)
	return t.release(mine, taken(chunks-1))
}

// AllGather is a Gather to every rank.
func (t *Team) AllGather(out, in []byte) error {
	if isShort(len(in), 1) {
		return t.shortAllGather(out, in)
	}
	there := part{at: t.me * len(in), n: len(in)} // where in belongs in every out
	if places, err := t.everyones(block(out, t.me, t.n), t.show(out, there), there); err != nil {
		return err
	} else if places != nil {
		return t.distribute(places, in, 0)
	}
	size, chunks := t.pieces(len(in), t.slot)
	t.lay(size)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, taken(u), everybody)
			if err != nil {
				return err
			}
			t.put(slot, cut(in, u, size))
			t.done(filled(u))
		}
		t.carry(cut(block(out, t.me, t.n), u, size), cut(in, u, size), len(out))
		if u == 0 {
			continue
		}
		if err := t.collect(out, u-1, size, 0); err != nil {
			return err
		}
	}
	t.passed(chunks)
	return nil
}

// collect takes piece number i, of so many bytes, from every other rank's slot to its block of out. It begins at byte from there.
func (t *Team) collect(out []byte, i, size, from int) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.wait(r, filled(i)); err != nil {
			return err
		}
		t.get(cut(block(out, r, t.n), i, size), t.slotOf(r, i)[from:], len(out))
	}
	t.done(taken(i))
	return nil
}

// AllToAll copies the r'th of the equal blocks of in to rank r, to the block of out that is numbered as the rank where it
// comes from.
func (t *Team) AllToAll(out, in []byte) error {
	if isShort(len(in)/t.n, t.n) {
		return t.shortAllToAll(out, in)
	}
	each := len(in) / t.n
	there := part{at: t.me * each, n: each} // where this rank's blocks belong in every out
	if places, err := t.everyones(block(out, t.me, t.n), t.show(out, there), there); err != nil {
		return err
	} else if places != nil {
		return t.distribute(places, in, each)
	}
	size, chunks := t.pieces(each, t.part())
	t.lay(t.n * size)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, taken(u), everybody)
			if err != nil {
				return err
			}
			t.deal(slot, in, u, size)
			t.done(filled(u))
		}
		t.carry(cut(block(out, t.me, t.n), u, size), cut(block(in, t.me, t.n), u, size), len(out))
		if u == 0 {
			continue
		}
		if err := t.collect(out, u-1, size, t.me*size); err != nil {
			return err
		}
	}
	t.passed(chunks)
	return nil
}

// deal puts piece i of every other rank's block of in where that rank looks for it in slot.
func (t *Team) deal(slot, in []byte, i, size int) {
	for r := range t.n {
		if r != t.me {
			t.put(cut(slot, r, size), cut(block(in, r, t.n), i, size))
		}
	}
}

// put copies src into this rank's slot, get copies what is in another one's, to be part of whole bytes.
func (t *Team) put(slot, src []byte) {
	t.fill(slot[:len(src)], src)
	t.Sent += uint64(len(src))
}
func (t *Team) get(dst, slot []byte, whole int) {
	t.carry(dst, slot[:len(dst)], whole)
	t.Received += uint64(len(dst))
}

// cut is the i'th piece of buf, of size bytes but for the last, or nothing past the end.
func cut(buf []byte, i, size int) []byte {
	from := min(i*size, len(buf))
	return buf[from:min(from+size, len(buf))]
}

// block is the r'th of n equal blocks of buf.
func block(buf []byte, r, n int) []byte {
	size := len(buf) / n
	return buf[r*size : (r+1)*size]
}

// carry copies src to dst, unless they are the same memory, as part of whole bytes: past the caches if these would only drive
// out all else.
func (t *Team) carry(dst, src []byte, whole int) {
	if t.outgrows(whole) && len(src) > 0 && &dst[0] != &src[0] {
		cpu.CopyPast(dst, src)
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
