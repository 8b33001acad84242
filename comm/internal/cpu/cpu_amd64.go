//go:build !schedule

package cpu

import "unsafe"

// StoreRelease sets *p to v after everything written before it, as seen by other processors. It is a plain store, which a
// processor of this kind never moves ahead of another; atomic.StoreUint64 waits for the line besides.
//
//go:noescape
func StoreRelease(p *uint64, v uint64)

// Fence is atomic_thread_fence(memory_order_acq_rel) of C: what is read before it is read before, and what is written after it is
// written after, all else there. A processor of this kind does that in any case.
func Fence() {}

// Await looks at *p until it has [Reached] least, or has been looked at tries times, and returns it.
//
//go:noescape
func Await(p *uint64, least uint64, tries int) uint64

// AwaitEqual looks at *p until it is want, or has been looked at tries times, and reports whether it is. Each time it looks at beside
// as well, which is read next and may be in another cache line: so both lines come at once.
//
//go:noescape
func AwaitEqual(p *uint64, want uint64, tries int, beside *byte) bool

// Copy is copy, of equal lengths that do not overlap, through the caches. Where the processor is fast at moving strings, a long
// copy is one: dst's cache lines, which it is to write as a whole, it takes from other processors and from caches farther away
// without what is in them. What is written later comes later, as seen by other processors.
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

// isString reports whether Copy moves n bytes as a string: shorter ones take longer to begin with than is gained.
func isString(n int) bool { return n >= 8<<10 && movesStrings }

// movesStrings is what the processor says of itself: fast short REP MOVSB.
var movesStrings = fastStrings()

func fastStrings() bool

//go:noescape
func copyString(dst, src *byte, n int)

// before is how many bytes are in mem before its first whole line, or its end.
func before(mem []byte) int {
	return min(-int(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))&(line-1), len(mem))
}

// HasNonTemporal reports whether CopyNonTemporal differs from copy.
const HasNonTemporal = true

// CopyNonTemporal is copy, of equal lengths, past the caches: dst's cache lines need not be had from another processor that has them.
// What is written is in memory before anything that is written later.
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

// Claim takes the cache lines that have nothing but mem in them away from other processors, as writing does, and changes nothing.
// Nobody else writes there meanwhile. What a processor only reads, it leaves with the one that has written it as well, which
// then waits for each line when it writes there again: for several times as long as to get a line back that the other has alone.
func Claim(mem []byte) {
	head := before(mem)
	if n := (len(mem) - head) &^ (line - 1); n > 0 {
		claim(&mem[head], n)
	}
}

// ClaimCopied is Claim of what another processor has written with Copy, where it is to write so again: of strings nothing need
// be claimed.
func ClaimCopied(mem []byte) {
	if !isString(len(mem)) {
		Claim(mem)
	}
}

// ClaimAhead asks for the cache lines of mem, so that they are on their way while the processor does something else.
func ClaimAhead(mem []byte) {
	if len(mem) > 0 {
		claimAhead(&mem[0], len(mem))
	}
}

//go:noescape
func claimAhead(p *byte, n int)

//go:noescape
func claim(p *byte, n int)

// line is how many bytes processors take from each other at once.
const line = 64

// longestCopy is how many bytes are copied at once: a goroutine cannot be stopped meanwhile, and Go's copy goes past the caches
// with four times as many.
const longestCopy = 256 << 10

//go:noescape
func copyNonTemporal(dst, src *byte, n int)

// ticks is the processor's time stamp counter, which all processors have in common.
func ticks() uint64

// Note sets p to 0, a, b, c, Now, whatever it was, and 0 at the end, in this order, and then its first word to key, as seen
// by other processors.
//
//go:noescape
func Note(p *[8]uint64, key, a, b, c uint64)

// StoreThree sets p to a, b and c, in this order, as seen by other processors.
//
//go:noescape
func StoreThree(p *[3]uint64, a, b, c uint64)
