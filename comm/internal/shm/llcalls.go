package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// broadcastLL is Broadcast of short buffers.
func (t *Team) broadcastLL(buf []byte, root int) error {
	e := t.next(llSize(len(buf)))
	if t.me == root {
		return t.sendLL(e, buf, everybody)
	}
	return t.finishLL(t.copyLL(root, e, 0, buf))
}

// gatherLL is Gather of short buffers.
func (t *Team) gatherLL(out, in []byte, root int) error {
	e := t.next(llSize(len(in)))
	if t.me != root {
		return t.sendLL(e, in, root)
	}
	outs := equal(out, len(in))
	move(outs.of(root), in)
	return t.finishLL(t.readBlocksLL(e, 0, &outs))
}

// scatterLL is Scatter of short buffers.
func (t *Team) scatterLL(out, in []byte, root int) error {
	e := t.next(t.n * llSize(len(out)))
	if t.me != root {
		return t.finishLL(t.copyLL(root, e, t.me*llSize(len(out)), out))
	}
	move(out, block(in, root, t.n))
	err := t.reserveLL(everybody)
	if err == nil {
		ins := equal(in, len(out))
		t.writeBlocksLL(e, &ins, len(out))
	}
	return t.finishLL(err)
}

// allGatherLL is AllGatherV of short blocks, of which the longest has so many bytes.
func (t *Team) allGatherLL(outs *Blocks, in []byte, longest int) error {
	e := t.next(llSize(longest))
	if err := t.reserveLLForAll(); err != nil {
		return err
	}
	t.writeLL(e, 0, in)
	t.sentLL(longest)
	move(outs.of(t.me), in)
	return t.readBlocksLL(e, 0, outs)
}

// barrierLL is Barrier of few ranks.
func (t *Team) barrierLL() error {
	e := t.next(llSize(0))
	if err := t.reserveLLForAll(); err != nil {
		return err
	}
	t.writeLL(e, 0, nil)
	t.sentLL(0)
	for r := range t.n {
		if r == t.me {
			continue
		}
		if _, err := t.readLL(r, e, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// allToAllLL is AllToAll of short blocks, of so many bytes each. (To make Blocks of them would take a tenth of its time.)
func (t *Team) allToAllLL(out, in []byte, each int) error {
	size := llSize(each)
	e := t.next(t.n * size)
	if err := t.reserveLLForAll(); err != nil {
		return err
	}
	for r := range t.n {
		if r != t.me {
			t.writeLL(e, r*size, in[r*each:][:each])
		}
	}
	t.sentLL(each)
	move(out[t.me*each:][:each], in[t.me*each:][:each])
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.copyLL(r, e, t.me*size, out[r*each:][:each]); err != nil {
			return err
		}
	}
	return nil
}

// allReduceLL is AllReduce of short buffers: every rank combines all inputs itself.
func (t *Team) allReduceLL(out, in []byte, red *Reduction) error {
	e := t.next(llSize(len(in)))
	if err := t.reserveLLForAll(); err != nil {
		return err
	}
	t.writeLL(e, 0, in)
	t.sentLL(len(in))
	return t.foldLL(e, 0, red, out, in)
}

// reduceLL is Reduce of short buffers.
func (t *Team) reduceLL(out, in []byte, red *Reduction, root int) error {
	e := t.next(llSize(len(in)))
	if t.me != root {
		return t.sendLL(e, in, root)
	}
	return t.finishLL(t.foldLL(e, 0, red, out, in))
}

// reduceScatterLL is ReduceScatterV of short blocks, of which the longest has so many bytes.
func (t *Team) reduceScatterLL(out []byte, ins *Blocks, longest int, red *Reduction) error {
	e := t.next(t.n * llSize(longest))
	if err := t.reserveLLForAll(); err != nil {
		return err
	}
	t.writeBlocksLL(e, ins, longest)
	t.sentLL(longest)
	return t.foldLL(e, t.me*llSize(longest), red, out, ins.of(t.me))
}

// sendLL writes data to this rank's entry, for reader.
func (t *Team) sendLL(e llEntry, data []byte, reader int) error {
	err := t.reserveLL(reader)
	if err == nil {
		t.writeLL(e, 0, data)
	}
	return t.finishLL(err)
}

// finishLL does step 1, unless err is not nil.
func (t *Team) finishLL(err error) error {
	if err == nil {
		t.done(1)
	}
	return err
}

// copyLL copies r's message to data.
func (t *Team) copyLL(r int, e llEntry, from int, data []byte) error {
	message, err := t.readLL(r, e, from, len(data))
	cpu.CopyPlain(data, message)
	return err
}

// writeBlocksLL makes a message of every other rank's block. There is room for so many bytes in each.
func (t *Team) writeBlocksLL(e llEntry, blocks *Blocks, longest int) {
	each := llSize(longest)
	for r := range t.n {
		if r != t.me {
			t.writeLL(e, r*each, blocks.of(r))
		}
	}
}

// readBlocksLL reads every other rank's block.
func (t *Team) readBlocksLL(e llEntry, from int, blocks *Blocks) error {
	for d := 1; d < t.n; d++ {
		r := (t.me + d) % t.n
		if err := t.copyLL(r, e, from, blocks.of(r)); err != nil {
			return err
		}
	}
	return nil
}

// foldLL combines own and the other ranks' values into dst, in order of rank. It does not change dst before all have come.
func (t *Team) foldLL(e llEntry, from int, red *Reduction, dst, own []byte) error {
	t.sources = t.sources[:0]
	var sum []byte
	for r := range t.n {
		values := own
		if r != t.me {
			var err error
			if values, err = t.readLL(r, e, from, len(own)); err != nil {
				return err
			}
		}
		switch {
		case red.Fold != nil:
			t.sources = append(t.sources, values)
		case r == 0:
			sum = values
		case len(own) > 0:
			next := dst
			if r < t.n-1 {
				next = t.scratchOf(len(own))
			}
			red.Kernel(next, sum, t.operand(red, values))
			sum = next
		}
	}
	if red.Fold != nil {
		t.fold(red, dst, nil, t.sources)
	}
	return nil
}
