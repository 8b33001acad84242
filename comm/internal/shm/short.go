package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// shortBroadcast is Broadcast by letters.
func (t *Team) shortBroadcast(buf []byte, root int) error {
	e := t.nextEntry(letterSize(len(buf)))
	var err error
	if t.me == root {
		if err = t.forOne(everybody); err == nil {
			t.write(e, 0, buf)
		}
	} else {
		err = t.copyFrom(root, e, 0, buf)
	}
	return t.wasDone(err)
}

// shortGather is Gather by letters.
func (t *Team) shortGather(out, in []byte, root int) error {
	e := t.nextEntry(letterSize(len(in)))
	if t.me != root {
		return t.submit(e, in, root)
	}
	move(block(out, root, t.n), in)
	return t.wasDone(t.readBlocks(e, 0, out))
}

// shortScatter is Scatter by letters.
func (t *Team) shortScatter(out, in []byte, root int) error {
	e := t.nextEntry(t.n * letterSize(len(out)))
	if t.me != root {
		return t.wasDone(t.copyFrom(root, e, t.me*letterSize(len(out)), out))
	}
	move(out, block(in, root, t.n))
	err := t.forOne(everybody)
	if err == nil {
		t.writeBlocks(e, in)
	}
	return t.wasDone(err)
}

// shortAllGather is AllGather by letters.
func (t *Team) shortAllGather(out, in []byte) error {
	e := t.nextEntry(letterSize(len(in)))
	if err := t.forAll(); err != nil {
		return err
	}
	t.write(e, 0, in)
	t.sent(len(in))
	move(block(out, t.me, t.n), in)
	return t.readBlocks(e, 0, out)
}

// shortAllToAll is AllToAll by letters.
func (t *Team) shortAllToAll(out, in []byte) error {
	e := t.nextEntry(t.n * letterSize(len(in)/t.n))
	if err := t.forAll(); err != nil {
		return err
	}
	t.writeBlocks(e, in)
	t.sent(len(in) / t.n)
	move(block(out, t.me, t.n), block(in, t.me, t.n))
	return t.readBlocks(e, t.me*letterSize(len(in)/t.n), out)
}

// shortAllReduce is AllReduce by letters: every rank combines all inputs itself.
func (t *Team) shortAllReduce(buf []byte, red Reduction) error {
	e := t.nextEntry(letterSize(len(buf)))
	if err := t.forAll(); err != nil {
		return err
	}
	t.write(e, 0, buf)
	t.sent(len(buf))
	return t.readAndFold(e, 0, red, buf, buf)
}

// shortReduce is Reduce by letters.
func (t *Team) shortReduce(buf []byte, red Reduction, root int) error {
	e := t.nextEntry(letterSize(len(buf)))
	if t.me != root {
		return t.submit(e, buf, root)
	}
	return t.wasDone(t.readAndFold(e, 0, red, buf, buf))
}

// shortReduceScatter is ReduceScatter by letters.
func (t *Team) shortReduceScatter(out, in []byte, red Reduction) error {
	e := t.nextEntry(t.n * letterSize(len(out)))
	if err := t.forAll(); err != nil {
		return err
	}
	t.writeBlocks(e, in)
	t.sent(len(out))
	return t.readAndFold(e, t.me*letterSize(len(out)), red, out, block(in, t.me, t.n))
}

// submit writes data to this rank's entry for reader.
func (t *Team) submit(e entry, data []byte, reader int) error {
	err := t.forOne(reader)
	if err == nil {
		t.write(e, 0, data)
	}
	return t.wasDone(err)
}

// wasDone has done step 1, unless that went wrong.
func (t *Team) wasDone(err error) error {
	if err == nil {
		t.done(1)
	}
	return err
}

// copyFrom copies r's letter to data.
func (t *Team) copyFrom(r int, e entry, from int, data []byte) error {
	letter, err := t.read(r, e, from, len(data))
	cpu.CopyPlain(data, letter)
	return err
}

// writeBlocks makes a letter of every other rank's block of in.
func (t *Team) writeBlocks(e entry, in []byte) {
	each := letterSize(len(in) / t.n)
	for r := range t.n {
		if r != t.me {
			t.write(e, r*each, block(in, r, t.n))
		}
	}
}

// readBlocks reads every other rank's block of out.
func (t *Team) readBlocks(e entry, from int, out []byte) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.copyFrom(r, e, from, block(out, r, t.n)); err != nil {
			return err
		}
	}
	return nil
}

// readAndFold sets dst to what own and the other ranks' values are together, in order of rank.
func (t *Team) readAndFold(e entry, from int, red Reduction, dst, own []byte) error {
	t.sources = t.sources[:0]
	for r := range t.n {
		values := own
		if r != t.me {
			var err error
			if values, err = t.read(r, e, from, len(own)); err != nil {
				return err
			}
		}
		t.sources = append(t.sources, values)
	}
	t.fold(red, dst, nil, t.sources)
	return nil
}
