package reduce

import "cmp"

// pairs returns the kernel of values made of two elements: a number and its location. The number that comes first in
// order wins. Of equal numbers the one with the first location wins.
func pairs[T any](order, location func(a, b T) int) Kernel {
	return func(dst, a, b []byte) {
		d, x, y := View[T](dst), View[T](a), View[T](b)
		for i := 0; i < len(d); i += 2 {
			winner := x
			if c := order(x[i], y[i]); c > 0 || c == 0 && location(x[i+1], y[i+1]) > 0 {
				winner = y
			}
			d[i], d[i+1] = winner[i], winner[i+1]
		}
	}
}

// lowest orders numbers upwards, highest downwards; both put NaN first.
func lowest[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }

func highest[T cmp.Ordered](a, b T) int {
	if a != a || b != b {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// Custom returns the kernel of the caller's own operation: f sets acc to acc op in.
func Custom[T any](f func(acc, in []T)) Kernel {
	return func(dst, a, b []byte) {
		if &dst[0] == &b[0] {
			f(View[T](a), View[T](b))
			copy(dst, a)
			return
		}
		if &dst[0] != &a[0] {
			copy(dst, a)
		}
		f(View[T](dst), View[T](b))
	}
}

// Normalize sets every integer of b, of type t, to 1 unless it is 0.
func Normalize(t Type, b []byte) { For(t, LogicalOr)(b, b, b) }
