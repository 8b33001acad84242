package cpu

// StoreRelease sets *p to v after everything written before it, as seen by other processors. It is a plain store, which a
// processor of this kind never moves ahead of another; atomic.StoreUint64 waits for the line besides.
//
//go:noescape
func StoreRelease(p *uint64, v uint64)

// Await looks at *p until it is at least least, or has been looked at tries times, and returns it.
//
//go:noescape
func Await(p *uint64, least uint64, tries int) uint64

// AwaitEqual looks at *p until it is want, or has been looked at tries times, and says whether it is.
//
//go:noescape
func AwaitEqual(p *uint64, want uint64, tries int) bool

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
