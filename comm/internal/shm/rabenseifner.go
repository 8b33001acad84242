package shm

// reduceRabenseifner combines buf of all ranks: a reduce-scatter and an all-gather through the slots, chunk by chunk (Rabenseifner's
// algorithm; with slots, as in DPML, Bayatpour et al., SC'17). Of every chunk each rank owns a share. It puts the other shares into
// its slot. It combines its own share straight out of the others' slots, and leaves the result in its buffer and, for the others, in
// its slot, where it has left room for its own share. Then it takes the other results. For n ranks and S bytes a rank reads and
// writes (4(n-1)+n+2)/n S bytes.
//
// With a root only that rank takes results, and buf of others keeps its input.
//
// The three steps of a chunk are done 2, 6 and 10 after three times its number: a rank puts chunk i+1 into its slot before it reduces
// chunk i, and reduces that before it takes the results of chunk i-1.
func (t *Team) reduceRabenseifner(buf []byte, red Reduction, root int) error {
	limit := t.slot / red.Elem * red.Elem
	size, chunks := t.chunkingOf(len(buf), limit, red.Elem)
	t.layOut(size)
	for u := range chunks + 2 {
		if u < chunks {
			if err := t.putShares(buf, red, u, size); err != nil {
				return err
			}
			t.done(offered(u))
		}
		if i := u - 1; i >= 0 && i < chunks {
			if err := t.reduceShare(buf, red, i, size, root); err != nil {
				return err
			}
			t.done(reduced(i))
		}
		if i := u - 2; i >= 0 {
			if root == everybody || root == t.me {
				if err := t.takeResults(buf, red, i, size); err != nil {
					return err
				}
			}
			t.done(collected(i))
		}
	}
	t.advance(chunks)
	return nil
}

func offered(i int) int   { return 3*i + 2 }
func reduced(i int) int   { return 3*i + 6 }
func collected(i int) int { return 3*i + 10 }

// share is the part of a chunk of n bytes that rank r owns: whole values, and whole cache lines where these fit.
func (t *Team) share(r, n, elem int) (from, to int) {
	unit := elem
	if lineSize%elem == 0 {
		unit = lineSize
	}
	each := ((n+t.n-1)/t.n + unit - 1) / unit * unit
	return min(r*each, n), min((r+1)*each, n)
}

// putShares puts chunk i into this rank's slot, without its own share.
func (t *Team) putShares(buf []byte, red Reduction, i, size int) error {
	slot, err := t.reserveSlot(i, collected(i), everybody)
	if err != nil {
		return err
	}
	chunk := cut(buf, i, size)
	from, to := t.share(t.me, len(chunk), red.Elem)
	t.put(slot[:from], chunk[:from])
	t.put(slot[to:], chunk[to:])
	return nil
}

// reduceShare combines this rank's share of chunk i.
func (t *Team) reduceShare(buf []byte, red Reduction, i, size, root int) error {
	chunk := cut(buf, i, size)
	from, to := t.share(t.me, len(chunk), red.Elem)
	sources, err := t.gatherSources(chunk[from:to], i, from, offered(i))
	if err != nil {
		return err
	}
	var mine, slot []byte
	if root == everybody || root == t.me {
		mine = chunk[from:to]
	}
	if root != t.me {
		slot = t.slotOf(t.me, i)[from:to]
	}
	t.fold(red, mine, slot, sources)
	return nil
}

// takeResults copies the other results of chunk i out of the others' slots.
func (t *Team) takeResults(buf []byte, red Reduction, i, size int) error {
	chunk := cut(buf, i, size)
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.wait(r, reduced(i)); err != nil {
			return err
		}
		from, to := t.share(r, len(chunk), red.Elem)
		t.get(chunk[from:to], t.slotOf(r, i)[from:to], 0)
	}
	return nil
}
