package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

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

// leaves says whether a root does better to put n bytes into slots and go on than to wait for the others: where these wait for
// their turns on its processor.
func (t *Team) leaves(n int) bool { return t.waiter.SharesCPU() && n < leastInCrowd }

// finished is the step of a rank that has done its part on buffers that all show.
const finished = 2

// finish waits until all have done their parts.
func (t *Team) finish() error {
	if err := t.used(finished); err != nil {
		return err
	}
	return t.release(true, finished)
}

// reduceShared leaves the reduction of bufs in all of them, or in root's. Every rank combines its share of them.
func (t *Team) reduceShared(bufs [][]byte, red Reduction, root int) error {
	from, to := t.share(t.me, len(bufs[0]), red.Elem)
	for r, b := range bufs {
		bufs[r] = b[from:to]
	}
	if root == everybody {
		return t.combine(bufs[t.me], bufs, bufs, red)
	}
	return t.combine(bufs[root], nil, bufs, red)
}

// combine sets dst and its copies to what bufs are together, block by block, so that it reads and writes each byte once. dst may
// be one of bufs; copies are none, or bufs.
func (t *Team) combine(dst []byte, copies, bufs [][]byte, red Reduction) error {
	large := t.outgrows(len(dst) * t.n)
	claims := copies == nil && !large // or else it writes there anyway
	past := large && !slices.ContainsFunc(bufs, func(b []byte) bool { return &b[0] == &dst[0] })
	size := max(foldBlock/red.Elem, 1) * red.Elem
	for lo := 0; lo < len(dst); lo += size {
		hi := min(lo+size, len(dst))
		for r, b := range bufs {
			if claims && r != t.me {
				cpu.Claim(b[lo:hi])
			}
		}
		sum := dst[lo:hi]
		if past {
			sum = t.room(hi - lo)
		}
		t.foldInto(red, sum, bufs, lo)
		if past {
			cpu.CopyPast(dst[lo:hi], sum)
		}
		for _, c := range copies {
			move(c[lo:hi], sum)
		}
	}
	t.Received += uint64(len(dst)) * uint64(t.n-1)
	t.Sent += uint64(len(dst)) * uint64(len(copies))
	return t.finish()
}

// spread copies bufs[root] to the others: every rank its share.
func (t *Team) spread(bufs [][]byte, root int) error {
	from, to := t.share(t.me, len(bufs[root]), 1)
	past := t.outgrows(len(bufs[root]))
	for lo := from; lo < to; lo += spreadBlock {
		hi := min(lo+spreadBlock, to)
		for r, b := range bufs {
			switch r {
			case root:
			case t.me:
				pull(b[lo:hi], bufs[root][lo:hi], past)
			default:
				t.push(b[lo:hi], bufs[root][lo:hi], past)
			}
		}
	}
	t.Received += uint64(to - from)
	return t.finish()
}

// distribute copies blocks of in, which begin so many bytes apart, to one place after the other.
func (t *Team) distribute(places [][]byte, in []byte, apart int) error {
	n := len(places[0])
	past := t.outgrows(2 * n * t.n) // as much is read as is written
	for lo := 0; lo < n; lo += spreadBlock {
		hi := min(lo+spreadBlock, n)
		for d := range t.n {
			r := (t.me + d) % t.n
			dst, src := places[r][lo:hi], in[r*apart:][lo:hi]
			switch {
			case r != t.me:
				t.push(dst, src, past)
			case !past:
				move(dst, src)
			case &dst[0] != &src[0]:
				cpu.CopyPast(dst, src)
			}
		}
	}
	t.Received += uint64(n) * uint64(t.n-1)
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

// pushes says whether r puts what it has into what this rank, the root, shows, and waits until piece number i is there if so.
func (t *Team) pushes(r, i int, mine bool) (bool, error) {
	if !mine {
		return false, nil
	}
	if shows, err := t.showsSoon(r); !shows {
		return false, err
	}
	return true, t.wait(r, taken(i))
}

// outgrows says whether buffers of n bytes, of all ranks together, are more than caches hold.
func (t *Team) outgrows(n int) bool { return n*t.n >= allCaches }

// push copies src to dst, which is another rank's: past the caches, or as it has served better.
func (t *Team) push(dst, src []byte, past bool) {
	t.Sent += uint64(len(src))
	if past {
		cpu.CopyPast(dst, src)
		return
	}
	for len(src) > 0 {
		n := min(len(src), spreadBlock)
		t.pushing.fill(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
}

// pull copies src, which is another rank's, to dst: past the caches, or so that the other one finds its lines as it left them.
func pull(dst, src []byte, past bool) {
	if past {
		cpu.CopyPast(dst, src)
		return
	}
	for len(src) > 0 {
		n := min(len(src), foldBlock)
		cpu.Claim(src[:n])
		cpu.Copy(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
}
