package reduce

// Scale multiplies every element of b, of type t, by factor. Integers take a whole factor and wrap. The half
// types are not scaled: their callers compute in float32.
func Scale(t Type, b []byte, factor float64) { apply(t, b, factor, true) }

// Divide divides every element of b, of type t, by n; integers truncate toward zero.
func Divide(t Type, b []byte, n int) { apply(t, b, float64(n), false) }

func apply(t Type, b []byte, by float64, multiply bool) {
	switch t {
	case Int8:
		scaleIntegers(View[int8](b), int64(by), multiply)
	case Int16:
		scaleIntegers(View[int16](b), int64(by), multiply)
	case Int32:
		scaleIntegers(View[int32](b), int64(by), multiply)
	case Int64:
		scaleIntegers(View[int64](b), int64(by), multiply)
	case Uint8:
		scaleIntegers(View[uint8](b), int64(by), multiply)
	case Uint16:
		scaleIntegers(View[uint16](b), int64(by), multiply)
	case Uint32:
		scaleIntegers(View[uint32](b), int64(by), multiply)
	case Uint64:
		scaleIntegers(View[uint64](b), int64(by), multiply)
	case Float32:
		scaleFloats(View[float32](b), by, multiply)
	case Float64:
		scaleFloats(View[float64](b), by, multiply)
	case Complex64: // real and imaginary part alike
		scaleFloats(View[float32](b), by, multiply)
	case Complex128:
		scaleFloats(View[float64](b), by, multiply)
	default:
		panic("reduce: cannot scale " + t.String())
	}
}

func scaleIntegers[T integer](v []T, by int64, multiply bool) {
	for i := range v {
		switch {
		case multiply:
			v[i] *= T(by)
		case int64(T(by)) == by:
			v[i] /= T(by)
		default: // more ranks than T can count
			v[i] = T(int64(v[i]) / by)
		}
	}
}

func scaleFloats[T float32 | float64](v []T, by float64, multiply bool) {
	for i := range v {
		if multiply {
			v[i] *= T(by)
		} else {
			v[i] /= T(by)
		}
	}
}
