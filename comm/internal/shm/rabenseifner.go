package shm

// reduceRabenseifner combines in of all ranks: a reduce-scatter and an all-gather through the slots, chunk by chunk (Rabenseifner's
// algorithm; with slots, as in DPML, Bayatpour et al., SC'17). Of every chunk each rank owns a slice. It puts the other slices into its
// slot. It combines its own slice straight out of the others' slots, and leaves the result in out and, for the others, in its
// slot, where it has left space for its own slice. Then it reads the other results. For n ranks and S bytes a rank reads and writes
// (4(n-1)+n+2)/n S bytes.
//
// With a root only that rank reads results, and out of others does not change.
//
// The three steps of a chunk are done 2, 6 and 10 after three times its number: a rank puts chunk i+1 into its slot before it reduces
// chunk i, and reduces that before it reads the results of chunk i-1.
func (t *Team) reduceRabenseifner(out, in []byte, red *Reduction, root int) error {
	limit := t.slot / red.Elem * red.Elem
	size, chunks := t.chunkingOf(len(in), limit, red.Elem)
	t.layOut(size)
	return t.pipeline(chunks, func(i int) error {
		return t.putSlices(cut(in, i, size), red, i)
	}, func(i int) error {
		return t.reduceSlice(cut(out, i, size), cut(in, i, size), red, i, root)
	}, func(i int) error {
		return t.readResults(cut(out, i, size), red, i, root)
	})
}

func offered(i int) int   { return 3*i + 2 }
func reduced(i int) int   { return 3*i + 6 }
func collected(i int) int { return 3*i + 10 }

// slice is the part of a chunk of n bytes that rank r owns: whole values, and whole cache lines where these fit.
func (t *Team) slice(r, n, elem int) (from, to int) {
	unit := elem
	if lineSize%elem == 0 {
		unit = lineSize
	}
	each := ((n+t.n-1)/t.n + unit - 1) / unit * unit
	return min(r*each, n), min((r+1)*each, n)
}

// putSlices puts chunk i into this rank's slot, without its own slice.
func (t *Team) putSlices(chunk []byte, red *Reduction, i int) error {
	slot, err := t.reserveSlot(i, collected(i), everybody)
	if err != nil {
		return err
	}
	from, to := t.slice(t.me, len(chunk), red.Elem)
	t.put(slot[:from], chunk[:from])
	t.put(slot[to:], chunk[to:])
	t.done(offered(i))
	return nil
}

// reduceSlice combines this rank's slice of chunk i.
func (t *Team) reduceSlice(out, in []byte, red *Reduction, i, root int) error {
	from, to := t.slice(t.me, len(in), red.Elem)
	sources, err := t.awaitSources(in[from:to], i, from, offered(i), true)
	if err != nil {
		return err
	}
	var mine, slot []byte
	if root == everybody || root == t.me {
		mine = out[from:to]
	}
	if root != t.me {
		slot = t.slotOf(t.me, i)[from:to]
	}
	t.fold(red, mine, slot, sources)
	t.done(reduced(i))
	return nil
}

// readResults copies the other slices of the result of chunk i from the others' slots, on a rank that gets a result.
func (t *Team) readResults(chunk []byte, red *Reduction, i, root int) error {
	for d := 1; d < t.n && (root == everybody || root == t.me); d++ {
		r := (t.me + d) % t.n
		if err := t.wait(r, reduced(i)); err != nil {
			return err
		}
		from, to := t.slice(r, len(chunk), red.Elem)
		t.get(chunk[from:to], t.slotOf(r, i)[from:to], 0)
	}
	t.done(collected(i))
	return nil
}
