//go:build !amd64 || schedule

package cpu

// Await polls *p until it has [Reached] least, but at most tries times, and returns it.
func Await(p *uint64, least uint64, tries int) (v uint64) {
	for range looks(p, tries) {
		if v = Load(p); Reached(v, least) {
			return v
		}
		looked(p)
	}
	return v
}

// AwaitEqual polls *p until it is want, but at most tries times, and reports whether it is.
func AwaitEqual(p *uint64, want uint64, tries int, _ *byte) bool {
	for range looks(p, tries) {
		if Load(p) == want {
			return true
		}
		looked(p)
	}
	return false
}

// Note writes a record: words 1 to 3 of p become a, b and c, word 4 becomes Now, and those behind it 0. The first
// word is 0 meanwhile, and becomes key when the rest is written. Other processors see the stores in this order.
func Note(p *[8]uint64, key, a, b, c uint64) {
	for i, w := range [...]uint64{0, a, b, c, ticks(), 0, 0, 0} {
		Store(&p[i], w)
	}
	Store(&p[0], key)
}

// StoreThree sets p to a, b and c. Other processors see the stores in this order.
func StoreThree(p *[3]uint64, a, b, c uint64) {
	for i, w := range [...]uint64{a, b, c} {
		Store(&p[i], w)
	}
}
