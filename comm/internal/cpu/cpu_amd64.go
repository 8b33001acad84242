//go:build !schedule

package cpu

import "unsafe"

// StoreRelease sets *p to v. Other processors see that after everything written before. It is a plain store, because this kind of
// processor does not reorder stores. atomic.StoreUint64 would also wait for the cache line.
//
//go:noescape
func StoreRelease(p *uint64, v uint64)

// Fence is atomic_thread_fence(memory_order_acq_rel) of C: loads before it come before, and stores after it come after, all other
// accesses. This kind of processor keeps that order in any case.
func Fence() {}

// Await polls *p until it has [Reached] least, but at most tries times, and returns it.
//
//go:noescape
func Await(p *uint64, least uint64, tries int) uint64

// AwaitEqual polls *p until it is want, but at most tries times, and reports whether it is. Each time it also reads beside, which the
// caller reads next and which may be in another cache line, so that both lines are fetched together.
//
//go:noescape
func AwaitEqual(p *uint64, want uint64, tries int, beside *byte) bool

// Copy is copy through the caches, for equal lengths that do not overlap. If the processor moves strings fast, a long copy uses REP
// MOVSB: it overwrites whole cache lines of dst, and so takes them from other processors and from farther caches without fetching what
// is in them. Other processors see later stores after it.
func Copy(dst, src []byte) {
	asString := isString(len(src))
	if asString {
		head := before(dst)
		copy(dst[:head], src)
		dst, src = dst[head:], src[head:]
	}
	for len(src) > 0 {
		n := min(len(src), longestCopy)
		if asString {
			copyString(&dst[0], &src[0], n)
		} else {
			copy(dst[:n], src)
		}
		dst, src = dst[n:], src[n:]
	}
}

// isString reports whether Copy moves n bytes as a string. To start a string move takes longer than short copies gain.
func isString(n int) bool { return n >= 8<<10 && movesStrings }

// movesStrings is the processor's feature flag "fast short REP MOVSB".
var movesStrings = fastStrings()

func fastStrings() bool

//go:noescape
func copyString(dst, src *byte, n int)

// before returns the bytes of mem before its first whole cache line, or before its end.
func before(mem []byte) int {
	return min(-int(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))&(line-1), len(mem))
}

// CopyNonTemporal is copy, for equal lengths, with stores that bypass the caches: they need not fetch dst's cache lines from another
// processor. What it writes is in memory before anything that is written later.
func CopyNonTemporal(dst, src []byte) {
	head := before(dst)
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	for len(dst) >= line {
		n := min(len(dst), longestCopy) &^ (line - 1)
		copyNonTemporal(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
}

// Claim takes the whole cache lines in mem away from other processors, as a write does (a read for ownership), and changes nothing. No
// other rank may write there meanwhile. If a processor only read the lines, the processor that has written them would keep a shared copy.
// To write there again it would have to upgrade each line, which takes several times as long as to fetch a line that another processor
// has alone.
func Claim(mem []byte) {
	head := before(mem)
	if n := (len(mem) - head) &^ (line - 1); n > 0 {
		claim(&mem[head], n)
	}
}

// ClaimCopied is Claim of what another processor has written with Copy, and will write so again. What Copy moves as a string need not be
// claimed.
func ClaimCopied(mem []byte) {
	if !isString(len(mem)) {
		Claim(mem)
	}
}

// ClaimAhead prefetches the cache lines of mem for writing.
func ClaimAhead(mem []byte) {
	if len(mem) > 0 {
		claimAhead(&mem[0], len(mem))
	}
}

//go:noescape
func claimAhead(p *byte, n int)

//go:noescape
func claim(p *byte, n int)

// line is the bytes of a cache line.
const line = 64

// longestCopy is the most bytes that are copied at once. A goroutine cannot be preempted meanwhile, and Go's copy bypasses the caches if
// it gets four times as many.
const longestCopy = 256 << 10

//go:noescape
func copyNonTemporal(dst, src *byte, n int)

// ticks reads the time stamp counter, which is the same on all processors.
func ticks() uint64

// Note writes a record: words 1 to 3 of p become a, b and c, word 4 becomes Now, and those behind it 0. The first
// word is 0 meanwhile, and becomes key when the rest is written. Other processors see the stores in this order.
//
//go:noescape
func Note(p *[8]uint64, key, a, b, c uint64)

// StoreThree sets p to a, b and c. Other processors see the stores in this order.
//
//go:noescape
func StoreThree(p *[3]uint64, a, b, c uint64)
