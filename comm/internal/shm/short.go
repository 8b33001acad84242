package shm

// shortBroadcast is Broadcast through cells.
func (t *Team) shortBroadcast(buf []byte, root int) error {
	e := t.nextEntry()
	var err error
	if t.me == root {
		if err = t.forOne(e, everybody); err == nil {
			t.write(e, 0, buf)
		}
	} else {
		err = t.read(root, e, 0, buf)
	}
	return t.wasDone(err)
}

// shortGather is Gather through cells.
func (t *Team) shortGather(out, in []byte, root int) error {
	e := t.nextEntry()
	if t.me != root {
		return t.submit(e, in, root)
	}
	move(block(out, root, t.n), in)
	return t.wasDone(t.readBlocks(e, 0, out))
}

// shortScatter is Scatter through cells.
func (t *Team) shortScatter(out, in []byte, root int) error {
	e := t.nextEntry()
	if t.me != root {
		return t.wasDone(t.read(root, e, t.me*cellsFor(len(out)), out))
	}
	move(out, block(in, root, t.n))
	err := t.forOne(e, everybody)
	if err == nil {
		t.writeBlocks(e, in)
	}
	return t.wasDone(err)
}

// shortAllGather is AllGather through cells.
func (t *Team) shortAllGather(out, in []byte) error {
	e := t.nextEntry()
	if err := t.forAll(e); err != nil {
		return err
	}
	t.write(e, 0, in)
	t.done(1)
	move(block(out, t.me, t.n), in)
	return t.readBlocks(e, 0, out)
}

// shortAllToAll is AllToAll through cells.
func (t *Team) shortAllToAll(out, in []byte) error {
	e := t.nextEntry()
	if err := t.forAll(e); err != nil {
		return err
	}
	t.writeBlocks(e, in)
	t.done(1)
	move(block(out, t.me, t.n), block(in, t.me, t.n))
	return t.readBlocks(e, t.me*cellsFor(len(in)/t.n), out)
}

// shortAllReduce is AllReduce through cells: every rank combines all inputs itself.
func (t *Team) shortAllReduce(buf []byte, red Reduction) error {
	e := t.nextEntry()
	if err := t.forAll(e); err != nil {
		return err
	}
	t.write(e, 0, buf)
	t.done(1)
	return t.readAndFold(e, 0, red, buf, buf)
}

// shortReduce is Reduce through cells.
func (t *Team) shortReduce(buf []byte, red Reduction, root int) error {
	e := t.nextEntry()
	if t.me != root {
		return t.submit(e, buf, root)
	}
	return t.wasDone(t.readAndFold(e, 0, red, buf, buf))
}

// shortReduceScatter is ReduceScatter through cells.
func (t *Team) shortReduceScatter(out, in []byte, red Reduction) error {
	e := t.nextEntry()
	if err := t.forAll(e); err != nil {
		return err
	}
	t.writeBlocks(e, in)
	t.done(1)
	return t.readAndFold(e, t.me*cellsFor(len(out)), red, out, block(in, t.me, t.n))
}

// submit writes data to this rank's entry for reader.
func (t *Team) submit(e entry, data []byte, reader int) error {
	err := t.forOne(e, reader)
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

// writeBlocks writes every other rank's block of in to cells of its own.
func (t *Team) writeBlocks(e entry, in []byte) {
	each := cellsFor(len(in) / t.n)
	for r := range t.n {
		if r != t.me {
			t.write(e, r*each, block(in, r, t.n))
		}
	}
}

// readBlocks reads every other rank's block of out.
func (t *Team) readBlocks(e entry, first int, out []byte) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.read(r, e, first, block(out, r, t.n)); err != nil {
			return err
		}
	}
	return nil
}

// readAndFold sets dst to what own and the other ranks' values are together, in order of rank.
func (t *Team) readAndFold(e entry, first int, red Reduction, dst, own []byte) error {
	n := len(own)
	if t.letters == nil {
		t.letters = make([]byte, t.n*cells*cellData)
	}
	t.sources = t.sources[:0]
	for r := range t.n {
		from := own
		if r != t.me {
			from = t.letters[r*cells*cellData:][:n]
			if err := t.read(r, e, first, from); err != nil {
				return err
			}
		}
		t.sources = append(t.sources, from)
	}
	t.fold(red, dst, nil, t.sources)
	return nil
}
