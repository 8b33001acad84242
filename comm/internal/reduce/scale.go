package reduce

// Scale multiplies every element of b, of type t, by factor. For integers factor is a whole number, and they wrap. t is
// not Float16 or BFloat16: these are scaled as float32.
func Scale(t Type, b []byte, factor float64) {
	scale(t, current.multiply[t], b, factor)
}

// Divide divides every element of b, of type t, by n. Integers truncate toward zero. t is a type that Scale takes.
func Divide(t Type, b []byte, n int) {
	scale(t, current.divide[t], b, float64(n))
}

func scale(t Type, f func(v []byte, by float64), b []byte, by float64) {
	if f == nil {
		panic("reduce: cannot scale " + t.String())
	}
	f(b, by)
}

func multiplyIntegers[T integer](b []byte, by float64) {
	v, factor := View[T](b), T(int64(by))
	for i := range v {
		v[i] *= factor
	}
}

func divideIntegers[T integer](b []byte, by float64) {
	v, n := View[T](b), int64(by)
	if int64(T(n)) != n { // more ranks than T can count
		for i := range v {
			v[i] = T(int64(v[i]) / n)
		}
		return
	}
	for i := range v {
		v[i] /= T(n)
	}
}

func multiplyFloats[T float32 | float64](b []byte, by float64) {
	v, factor := View[T](b), T(by)
	for i := range v {
		v[i] *= factor
	}
}

func divideFloats[T float32 | float64](b []byte, by float64) {
	v, divisor := View[T](b), T(by)
	for i := range v {
		v[i] /= divisor
	}
}
