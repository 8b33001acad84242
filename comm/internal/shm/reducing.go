package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// A Kernel sets every value of dst to a op b. dst is a, b, or neither; nothing else is changed.
type Kernel func(dst, a, b []byte)

// A Reduction combines values of Elem bytes in order of rank.
type Reduction struct {
	Elem   int
	Kernel Kernel
	Fold   func(dst []byte, sources [][]byte) // instead of Kernel: of all sources at once, of which dst may be one
	Copies bool                               // the operands of others must be copies, as they may be changed
}

// fold sets dst and also, if it is not nil, to what the sources are together, in order of rank. dst may be one of the
// sources; also is none of them, but in a slot.
func (t *Team) fold(red Reduction, dst, also []byte, sources [][]byte) {
	if n := len(sources[0]); n > 0 && n <= foldBlock && also == nil { // in less time than it takes to cut it
		t.foldInto(red, dst, sources, 0)
		return
	}
	size := max(foldBlock/red.Elem, 1) * red.Elem
	for lo := 0; lo < len(sources[0]); lo += size {
		hi := min(lo+size, len(sources[0]))
		var sum []byte
		switch {
		case also != nil && !t.past:
			sum = also[lo:hi]
		case dst != nil:
			sum = dst[lo:hi]
		default:
			sum = t.room(hi - lo)
		}
		t.foldInto(red, sum, sources, lo)
		if dst != nil {
			move(dst[lo:hi], sum)
		}
		if also != nil && t.past {
			t.fill(also[lo:hi], sum)
		}
	}
}

// foldInto sets dst to what the sources are together there, from byte lo on, in order of rank. It may be one of them.
func (t *Team) foldInto(red Reduction, dst []byte, sources [][]byte, lo int) {
	hi := lo + len(dst)
	if red.Fold != nil {
		red.Fold(dst, t.cutAll(sources, lo, hi))
		return
	}
	sum := sources[0][lo:hi]
	for _, s := range sources[1 : len(sources)-1] {
		part := t.room(len(dst))
		red.Kernel(part, sum, s[lo:hi])
		sum = part
	}
	red.Kernel(dst, sum, sources[len(sources)-1][lo:hi])
}

// cutAll are bytes lo to hi of the sources.
func (t *Team) cutAll(sources [][]byte, lo, hi int) [][]byte {
	t.blocks = t.blocks[:0]
	for _, s := range sources {
		t.blocks = append(t.blocks, s[lo:hi])
	}
	return t.blocks
}

// room is scratch memory, aligned for any element.
func (t *Team) room(n int) []byte {
	if len(t.scratch) < n {
		t.scratch = make([]byte, n)
	}
	return t.scratch[:n]
}

// gatherSources waits until all ranks have done step and returns where their parts lie: this rank's own, others' in their
// slots for chunk i from byte at on.
func (t *Team) gatherSources(own []byte, i, at, step int) ([][]byte, error) {
	t.sources = t.sources[:0]
	for r := range t.n {
		if r == t.me {
			t.sources = append(t.sources, own)
			continue
		}
		if err := t.wait(r, step); err != nil {
			return nil, err
		}
		theirs := t.slotOf(r, i)[at : at+len(own)]
		cpu.ClaimCopied(theirs)
		t.sources = append(t.sources, theirs)
		t.Received += uint64(len(own))
	}
	return t.sources, nil
}

// AllReduce combines buf of all ranks and leaves the result in buf on all of them.
func (t *Team) AllReduce(buf []byte, red Reduction) error {
	if isShort(len(buf), 1) {
		return t.shortAllReduce(buf, red)
	}
	whole := part{n: len(buf)}
	if bufs, err := t.everyones(buf, !red.Copies && t.show(buf, whole), whole); err != nil {
		return err
	} else if bufs != nil {
		return t.reduceShared(bufs, red, everybody)
	}
	if t.ways.allReduce.Pick(len(buf)) == "flat" {
		return t.allReduceFlat(buf, red)
	}
	return t.sharedReduce(buf, red, everybody)
}

// allReduceFlat shows buf to all ranks, chunk by chunk, and each combines all of them.
func (t *Team) allReduceFlat(buf []byte, red Reduction) error {
	size, chunks := t.values(len(buf), t.slot, red.Elem)
	t.lay(size)
	for u := range chunks + 1 {
		if u < chunks {
			slot, err := t.own(u, taken(u), everybody)
			if err != nil {
				return err
			}
			t.put(slot, cut(buf, u, size))
			t.done(filled(u))
		}
		if u == 0 {
			continue
		}
		piece := cut(buf, u-1, size)
		sources, err := t.gatherSources(piece, u-1, 0, filled(u-1))
		if err != nil {
			return err
		}
		t.fold(red, piece, nil, sources)
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// Reduce is AllReduce with the result in buf of rank root only; elsewhere buf keeps its input.
func (t *Team) Reduce(buf []byte, red Reduction, root int) error {
	if isShort(len(buf), 1) {
		return t.shortReduce(buf, red, root)
	}
	whole := part{n: len(buf)}
	mine := !red.Copies && t.show(buf, whole)
	if !mine && t.me == root && t.isDirect(whole) {
		t.done(begun) // before it waits for the others, which may be waiting to see what it shows
	}
	if bufs, err := t.everyones(buf, mine, whole); err != nil {
		return err
	} else if bufs != nil {
		return t.reduceShared(bufs, red, root)
	}
	if t.ways.reduce.Pick(len(buf)) == "shared" {
		return t.sharedReduce(buf, red, root)
	}
	size, chunks := t.values(len(buf), t.slot, red.Elem)
	t.lay(size)
	for i := range chunks {
		piece := cut(buf, i, size)
		if t.me != root {
			slot, err := t.own(i, taken(i), root)
			if err != nil {
				return err
			}
			t.put(slot, piece)
			t.done(filled(i))
			continue
		}
		sources, err := t.gatherSources(piece, i, 0, filled(i))
		if err != nil {
			return err
		}
		t.fold(red, piece, nil, sources)
		t.done(taken(i))
	}
	t.passed(chunks)
	return nil
}

// ReduceScatter combines in of all ranks and leaves the r'th of the result's equal blocks in out of rank r. out may be this
// rank's block of in.
func (t *Team) ReduceScatter(out, in []byte, red Reduction) error {
	if isShort(len(out), t.n) {
		return t.shortReduceScatter(out, in, red)
	}
	own := block(in, t.me, t.n)
	mine := part{at: t.me * len(out), n: len(out)}
	if blocks, err := t.everyones(own, !red.Copies && t.show(in, mine), mine); err != nil {
		return err
	} else if blocks != nil {
		return t.combine(out, nil, blocks, red)
	}
	size, chunks := t.values(len(out), t.part(), red.Elem)
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
		if u == 0 {
			continue
		}
		sources, err := t.gatherSources(cut(own, u-1, size), u-1, t.me*size, filled(u-1))
		if err != nil {
			return err
		}
		t.fold(red, cut(out, u-1, size), nil, sources)
		t.done(taken(u - 1))
	}
	t.passed(chunks)
	return nil
}

// values is pieces, of whole values.
func (t *Team) values(n, limit, elem int) (size, count int) {
	size, _ = t.pieces(n, limit)
	size = max(size/elem, 1) * elem
	return size, max((n+size-1)/size, 1)
}
