package bench

import "iter"

// Sizes are the sizes, in bytes, from Min to Max: each Step more than the one before, or if that is 0, Factor times as much.
type Sizes struct {
	Min, Max, Step int64
	Factor         int
}

// maxSize and MaxFactor keep sizes from overflowing.
const (
	maxSize   = 1 << 40
	MaxFactor = 1 << 20
)

// of returns the sizes, rounded down to whole units, but at least one unit. It returns no size twice in a row.
func (s Sizes) of(unit int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		last := int64(0)
		for size := s.Min; size <= s.Max; size = s.after(size) {
			cut := wholeUnits(size, unit)
			if cut != last && !yield(cut) {
				return
			}
			last = cut
		}
	}
}

func (s Sizes) after(size int64) int64 {
	if s.Step > 0 {
		return size + s.Step
	}
	return size * int64(s.Factor)
}

// largest returns a bound for the sizes.
func (s Sizes) largest(unit int64) int64 { return wholeUnits(s.Max, unit) }

func wholeUnits(size, unit int64) int64 { return max(size-size%unit, unit) }
