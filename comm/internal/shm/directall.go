package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// Where the buffers of all ranks show, all have a part in the work of an operation, whoever has something to give and whoever
// gets it: every rank does its share of it, from some buffers to others, and waits until all have.

// everyones returns the buffers of all ranks, if every one shows its own, or else nil. mine says whether this rank does, with
// buf.
func (t *Team) everyones(buf []byte, mine bool, p part) ([][]byte, error) {
	if !mine {
		return nil, nil
	}
	t.sources = t.sources[:0]
	for r := range t.n {
		mem := buf
		if r != t.me {
			var err error
			if mem, err = t.look(r, p); mem == nil {
				t.unsee()
				return nil, err
			}
		}
		t.sources = append(t.sources, mem)
	}
	return t.sources, nil
}

// everyonesIf is everyones for an operation in which only root has something to give: unless it shows that, the others' buffers
// do not matter.
func (t *Team) everyonesIf(root int, buf []byte, mine bool, p part) ([][]byte, error) {
	if t.me != root && t.isDirect(p) {
		if mem, err := t.look(root, p); mem == nil {
			return nil, err
		}
		if !mine {
			t.done(begun)
		}
	}
	return t.everyones(buf, mine, p)
}

// finished is the step of a rank that has done its part on buffers that all show.
const finished = 2

// finish waits until all have done their parts.
func (t *Team) finish() error {
	if err := t.used(finished); err != nil {
		return err
	}
	return t.release(true, finished)
}

// combine leaves the reduction of bufs in all of them, or in root's. Every rank combines its share of them, block by block: it
// reads each byte once, and writes it once.
func (t *Team) combine(bufs [][]byte, red Reduction, root int) error {
	into, others := bufs[t.me], bufs
	if root != everybody {
		into, others = bufs[root], nil
	}
	from, to := t.share(t.me, len(into), red.Elem)
	size := max(foldBlock/red.Elem, 1) * red.Elem
	for lo := from; lo < to; lo += size {
		hi := min(lo+size, to)
		sum := bufs[0][lo:hi]
		for i, b := range bufs[1:] {
			dst := into[lo:hi]
			if i+2 < t.n {
				dst = t.room(hi - lo)
			}
			red.Kernel(dst, sum, b[lo:hi])
			sum = dst
		}
		for _, other := range others {
			move(other[lo:hi], sum)
		}
	}
	t.Received += uint64(to-from) * uint64(t.n-1)
	t.Sent += uint64(to-from) * uint64(len(others))
	return t.finish()
}

// spread copies bufs[root] to the others: every rank its share.
func (t *Team) spread(bufs [][]byte, root int) error {
	from, to := t.share(t.me, len(bufs[root]), 1)
	past := to-from >= 4*pastCaches // else most of it is still in the caches
	for lo := from; lo < to; lo += spreadBlock {
		hi := min(lo+spreadBlock, to)
		for r, b := range bufs {
			switch {
			case r == root:
			case past:
				cpu.CopyPast(b[lo:hi], bufs[root][lo:hi])
			default:
				copy(b[lo:hi], bufs[root][lo:hi])
			}
		}
	}
	t.Received += uint64(to - from)
	t.Sent += uint64(to-from) * uint64(t.n-1)
	return t.finish()
}

// showToRoot shows out on root, and in elsewhere. Root has its first step behind it in any case: who shows something waits
// for that.
func (t *Team) showToRoot(out, in []byte, root int, p part) bool {
	if t.me != root {
		return t.show(in, p)
	}
	mine := t.show(out, p)
	if !mine && t.isDirect(p) {
		t.done(begun)
	}
	return mine
}

// push copies in, which travels in so many pieces otherwise, to where it belongs in root's buffer, and stays until root has
// noticed.
func (t *Team) push(to, in []byte, root, pieces int) error {
	move(to, in)
	t.Sent += uint64(len(in))
	if err := t.used(taken(pieces - 1)); err != nil {
		return err
	}
	return t.wait(root, taken(pieces-1))
}

// pushes says whether r puts what it has into what this rank, the root, shows, and waits until piece number i is there if so.
func (t *Team) pushes(r, i int, mine bool) (bool, error) {
	if !mine {
		return false, nil
	}
	if err := t.wait(r, begun); err != nil || !t.shows(r) {
		return false, err
	}
	return true, t.wait(r, taken(i))
}
