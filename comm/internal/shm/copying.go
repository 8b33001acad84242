package shm

// An operation moves its data in chunks. A rank that others read from fills a slot with each; readers copy chunks out as
// they come. Step 2i+1 is done when chunk i has been filled, step 2i+4 when it has been taken: a rank that does both fills
// the next chunk before it takes one, so that there is something to take when it comes to it.

func filled(i int) int { return 2*i + 1 }
func taken(i int) int  { return 2*i + 4 }

// everybody stands for all other ranks where one could be meant.
const everybody = -1

// Barrier returns when all ranks have called it. A few ranks read empty letters from each other. If there are many, then in
// round k every rank tells the one 2^k further on that it has come, and all that it has heard of (dissemination; Hensgen,
// Finkel and Manber 1988): nobody waits for more than log2(n) others.
func (t *Team) Barrier() error {
	if t.n <= flatBarrier {
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
	for i := range chunks {
		piece := cut(buf, i, size)
		if t.me == root {
			slot, err := t.own(i, len(piece), taken(i), everybody)
			if err != nil {
				return err
			}
			t.put(slot, piece)
			t.done(filled(i))
			continue
		}
		if err := t.wait(root, filled(i)); err != nil {
			return err
		}
		t.get(piece, t.slotOf(root, i))
		t.done(taken(i))
	}
	t.chunks += uint64(chunks)
	return nil
}

// Gather copies in of every rank r to the r'th of the equal blocks of out of rank root. There in may be its block of out.
func (t *Team) Gather(out, in []byte, root int) error {
	if isShort(len(in), 1) {
		return t.shortGather(out, in, root)
	}
	size, chunks := t.pieces(len(in), t.slot)
	for i := range chunks {
		if t.me != root {
			slot, err := t.own(i, size, taken(i), root)
			if err != nil {
				return err
			}
			t.put(slot, cut(in, i, size))
			t.done(filled(i))
			continue
		}
		for d := 1; d < t.n; d++ {
			r := (root + d) % t.n
			if err := t.wait(r, filled(i)); err != nil {
				return err
			}
			t.get(cut(block(out, r, t.n), i, size), t.slotOf(r, i))
		}
		t.done(taken(i))
	}
	if t.me == root {
		move(block(out, root, t.n), in)
	}
	t.chunks += uint64(chunks)
	return nil
}

// Scatter copies the r'th of the equal blocks of in of rank root to out of every rank r. There out may be its block of in.
func (t *Team) Scatter(out, in []byte, root int) error {
	if isShort(len(out), t.n) {
		return t.shortScatter(out, in, root)
	}
	size, chunks := t.pieces(len(out), t.part())
	for i := range chunks {
		if t.me == root {
			slot, err := t.own(i, t.n*size, taken(i), everybody)
			if err != nil {
				return err
			}
			t.deal(slot, in, i, size)
			t.done(filled(i))
			continue
		}
		if err := t.wait(root, filled(i)); err != nil {
			return err
		}
		t.get(cut(out, i, size), cut(t.slotOf(root, i), t.me, size))
		t.done(taken(i))
	}
	if t.me == root {
		move(out, block(in, root, t.n))
	}
	t.chunks += uint64(chunks)
	return nil
}

// AllGather is a Gather to every rank.
func (t *Team) AllGather(out, in []byte) error {
	if isShort(len(in), 1) {
		return t.shortAllGather(out, in)
	}
	size, chunks := t.pieces(len(in), t.slot)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, size, taken(u), everybody)
			if err != nil {
				return err
			}
			t.put(slot, cut(in, u, size))
			t.done(filled(u))
		}
		if u == 0 {
			move(block(out, t.me, t.n), in)
			continue
		}
		for d := 1; d < t.n; d++ {
			r := (t.me + d) % t.n
			if err := t.wait(r, filled(u-1)); err != nil {
				return err
			}
			t.get(cut(block(out, r, t.n), u-1, size), t.slotOf(r, u-1))
		}
		t.done(taken(u - 1))
	}
	t.chunks += uint64(chunks)
	return nil
}

// AllToAll copies the r'th of the equal blocks of in to rank r, to the block of out that is numbered as the rank where it
// comes from.
func (t *Team) AllToAll(out, in []byte) error {
	if isShort(len(in)/t.n, t.n) {
		return t.shortAllToAll(out, in)
	}
	size, chunks := t.pieces(len(in)/t.n, t.part())
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, t.n*size, taken(u), everybody)
			if err != nil {
				return err
			}
			t.deal(slot, in, u, size)
			t.done(filled(u))
		}
		if u == 0 {
			move(block(out, t.me, t.n), block(in, t.me, t.n))
			continue
		}
		for d := 1; d < t.n; d++ {
			r := (t.me + d) % t.n
			if err := t.wait(r, filled(u-1)); err != nil {
				return err
			}
			t.get(cut(block(out, r, t.n), u-1, size), cut(t.slotOf(r, u-1), t.me, size))
		}
		t.done(taken(u - 1))
	}
	t.chunks += uint64(chunks)
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

// put copies src into this rank's slot, get copies what is in another one's.
func (t *Team) put(slot, src []byte) {
	slot = slot[:len(src)]
	t.fill(slot, src)
	t.Sent += uint64(len(src))
}
func (t *Team) get(dst, slot []byte) { t.Received += uint64(copy(dst, slot)) }

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

// move copies src to dst, unless they are the same memory.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}
