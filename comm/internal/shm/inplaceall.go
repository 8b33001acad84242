package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// If all ranks export their buffers, every rank does one slice of the work of an operation, from any buffers to any others, and waits
// until all have done theirs.

// attachAll returns the buffers of all ranks if every one exports its own, or else nil. exported reports whether this rank exports buf.
func (t *Team) attachAll(buf []byte, exported bool, p span) ([][]byte, error) {
	if !exported {
		return nil, nil
	}
	t.sources = t.sources[:0]
	for r := range t.n {
		mem := buf
		if r != t.me {
			var err error
			if mem, err = t.attach(r, p); mem == nil {
				t.detachAll()
				return nil, err
			}
		}
		t.sources = append(t.sources, mem)
	}
	return t.sources, nil
}

// attachAllIf is attachAll for an operation in which only root has data. If root does not export its buffer, the others' buffers are
// not used.
func (t *Team) attachAllIf(root int, buf []byte, exported bool, p span) ([][]byte, error) {
	if t.me != root && t.isInPlace(p) {
		if mem, err := t.attach(root, p); mem == nil {
			return nil, err
		}
		if !exported {
			t.done(exportStep)
		}
	}
	return t.attachAll(buf, exported, p)
}

// rootUsesSlots reports whether it is faster for a root to put n bytes into slots and continue than to wait for the others. That is so
// if others wait for its processor.
func (t *Team) rootUsesSlots(n int) bool {
	return t.waiter.SharesCPU() && n < choice.Registered.LeastRoot
}

// finished is the step after which a rank has done its slice of the work, if all ranks export their buffers.
const finished = 2

// finish waits until all have done their slices.
func (t *Team) finish() error {
	if err := t.finishReading(finished); err != nil {
		return err
	}
	return t.awaitAll(true, finished)
}

// operandsToExport returns in, or a copy of it in out if this rank is about to export out: ranks combine there.
func (t *Team) operandsToExport(out, in []byte, red *Reduction, p span) []byte {
	if red.Copies || !t.isInPlace(p) || &out[0] == &in[0] {
		return in
	}
	if _, ok := t.heap.Handle(out); !ok {
		return in
	}
	move(out, in)
	return out
}

// reduceInPlace leaves the reduction of bufs in all of them, or in root's. Every rank combines its slice.
func (t *Team) reduceInPlace(bufs [][]byte, red *Reduction, root int) error {
	from, to := t.slice(t.me, len(bufs[0]), red.Elem)
	for r, b := range bufs {
		bufs[r] = b[from:to]
	}
	if root == everybody {
		return t.combineInPlace(bufs[t.me], bufs, bufs, red)
	}
	return t.combineInPlace(bufs[root], nil, bufs, red)
}

// combineInPlace combines bufs into dst and its copies, block by block, so that it reads and writes each byte once. dst may be one of
// bufs; copies are none, or bufs.
func (t *Team) combineInPlace(dst []byte, copies, bufs [][]byte, red *Reduction) error {
	large := t.exceedsCaches(len(dst) * t.n)
	claims := copies == nil && !large // it writes to copies in any case
	bypass := large && !slices.ContainsFunc(bufs, func(b []byte) bool { return &b[0] == &dst[0] })
	size := max(foldBlock/red.Elem, 1) * red.Elem
	for lo := 0; lo < len(dst); lo += size {
		hi := min(lo+size, len(dst))
		for r, b := range bufs {
			if claims && r != t.me {
				cpu.Claim(b[lo:hi])
			}
		}
		sum := dst[lo:hi]
		if bypass {
			sum = t.scratchOf(hi - lo)
		}
		t.foldInto(red, sum, bufs, lo)
		if bypass {
			cpu.CopyNonTemporal(dst[lo:hi], sum)
		}
		for _, c := range copies {
			move(c[lo:hi], sum)
		}
		t.countMoved(hi - lo)
	}
	t.Received += uint64(len(dst)) * uint64(t.n-1)
	t.Sent += uint64(len(dst)) * uint64(len(copies))
	return t.finish()
}

// broadcastInPlace copies bufs[root] to the others. Every rank copies its slice.
func (t *Team) broadcastInPlace(bufs [][]byte, root int) error {
	from, to := t.slice(t.me, len(bufs[root]), 1)
	bypass := t.exceedsLastCache(len(bufs[root]))
	for lo := from; lo < to; lo += spreadBlock {
		hi := min(lo+spreadBlock, to)
		for r, b := range bufs {
			switch r {
			case root:
			case t.me:
				t.pull(b[lo:hi], bufs[root][lo:hi], bypass)
			default:
				t.push(b[lo:hi], bufs[root][lo:hi], bypass)
			}
		}
	}
	t.Received += uint64(to - from)
	return t.finish()
}

// distributeInPlace copies block r of in to places[r]. The blocks begin apart bytes after each other.
func (t *Team) distributeInPlace(places [][]byte, in []byte, apart int) error {
	n := len(places[0])
	bypass := t.exceedsCaches(2 * n * t.n) // as much is read as is written
	for lo := 0; lo < n; lo += spreadBlock {
		hi := min(lo+spreadBlock, n)
		for d := range t.n {
			r := (t.me + d) % t.n
			dst, src := places[r][lo:hi], in[r*apart:][lo:hi]
			switch {
			case r != t.me:
				t.push(dst, src, bypass)
			case !bypass:
				move(dst, src)
			case &dst[0] != &src[0]:
				cpu.CopyNonTemporal(dst, src)
			}
		}
	}
	t.Received += uint64(n) * uint64(t.n-1)
	return t.finish()
}

// exportToRoot exports out on root, and in on other ranks. Root does its first step in any case: ranks that export wait for it, while
// root may wait for them.
func (t *Team) exportToRoot(out, in []byte, root int, p span) bool {
	if t.me != root {
		return t.exportBuffer(in, p)
	}
	exported := t.exportBuffer(out, p)
	if !exported && t.isInPlace(p) {
		t.done(exportStep)
	}
	return exported
}

// waitPushed reports whether r writes its data into the buffer that this rank, the root, exports. If so it waits for chunk i.
func (t *Team) waitPushed(r, i int, exported bool) (bool, error) {
	if !exported {
		return false, nil
	}
	if exports, err := t.isExporting(r); !exports {
		return false, err
	}
	return true, t.wait(r, readStep(i))
}

// exceedsCaches reports whether buffers of n bytes, of all ranks together, are larger than the caches.
func (t *Team) exceedsCaches(n int) bool { return n*t.n >= allCaches }

// exceedsLastCache reports the same of a buffer that its rank uses again and again, such as that of a broadcast. It may be in the last-level
// cache, and non-temporal stores to what a cache holds take twice as long as others. Much else shares that cache, other machines among it.
func (t *Team) exceedsLastCache(n int) bool {
	return t.exceedsCaches(n) && n*t.n >= cpu.LastLevelCache()/8
}

// push copies src to dst, which is another rank's. It uses non-temporal stores if bypass is set, or else the stores that have been
// faster.
func (t *Team) push(dst, src []byte, bypass bool) {
	t.Sent += uint64(len(src))
	if bypass {
		t.bypass(dst, src)
		return
	}
	for len(src) > 0 {
		n := min(len(src), spreadBlock)
		t.pushPolicy.write(dst[:n], src[:n])
		t.countMoved(n)
		dst, src = dst[n:], src[n:]
	}
}

// pull copies src, which is another rank's, to dst. It uses non-temporal stores if bypass is set, or else claims src's cache lines.
func (t *Team) pull(dst, src []byte, bypass bool) {
	if bypass {
		t.bypass(dst, src)
		return
	}
	for len(src) > 0 {
		n := min(len(src), foldBlock)
		cpu.Claim(src[:n])
		cpu.Copy(dst[:n], src[:n])
		t.countMoved(n)
		dst, src = dst[n:], src[n:]
	}
}
