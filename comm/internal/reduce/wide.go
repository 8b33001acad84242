package reduce

// Widen sets dst to the values of src, which are of type t: Float16 or BFloat16.
func Widen(t Type, dst []float32, src []byte) { current.widen[t](dst, src) }

// Narrow rounds the values of src to elements of type t: Float16 or BFloat16.
func Narrow(t Type, dst []byte, src []float32) { current.narrow[t](dst, src) }

// addHalves adds the functions of t, Float16 or BFloat16, to l.
func addHalves(l *level, t Type) {
	for _, o := range []Op{Sum, Prod, Min, Max} {
		l.combine[t][o] = inFloat32(t, o)
	}
	low := func(a, b uint16) int { return lowest(t.toFloat32(a), t.toFloat32(b)) }
	high := func(a, b uint16) int { return highest(t.toFloat32(a), t.toFloat32(b)) }
	l.combine[t][MinLoc], l.combine[t][MaxLoc] = pairs(low, low), pairs(high, low)
	for _, o := range []Op{Sum, Prod} {
		l.accumulate[t][o] = accumulating(t, o)
		l.folds[t][o] = func(dst []byte, srcs [][]byte) { l.fold(t, o, dst, srcs) }
	}
	l.widen[t], l.narrow[t] = t.widen, t.narrow
}

// atOnce is how many half floats are widened at a time.
const atOnce = 64

func inFloat32(t Type, o Op) Kernel {
	return func(dst, a, b []byte) {
		var x, y [atOnce]float32
		for len(dst) > 0 {
			n := min(atOnce, len(dst)/2)
			t.widen(x[:n], a)
			t.widen(y[:n], b)
			o.combine(x[:n], y[:n])
			t.narrow(dst[:2*n], x[:n])
			dst, a, b = dst[2*n:], a[2*n:], b[2*n:]
		}
	}
}

// accumulating returns a function that sets acc to acc o src. src has half floats of type t. Nothing is rounded.
func accumulating(t Type, o Op) func(acc []float32, src []byte) {
	return func(acc []float32, src []byte) {
		var x [atOnce]float32
		for len(acc) > 0 {
			n := min(atOnce, len(acc))
			t.widen(x[:n], src)
			o.combine(acc[:n], x[:n])
			acc, src = acc[n:], src[2*n:]
		}
	}
}

// combine sets acc to acc o v.
func (o Op) combine(acc, v []float32) {
	d, s := Bytes(acc), Bytes(v)
	switch o {
	case Sum:
		sum[float32](d, d, s)
	case Prod:
		prod[float32](d, d, s)
	case Min:
		minimum[float32](d, d, s)
	case Max:
		maximum[float32](d, d, s)
	default:
		panic("reduce: not an operation on floats: " + o.String())
	}
}

func (t Type) widen(dst []float32, src []byte) {
	s := View[uint16](src)[:len(dst)]
	if t == BFloat16 {
		for i, h := range s {
			dst[i] = BFloat16ToFloat32(h)
		}
		return
	}
	for i, h := range s {
		dst[i] = Float16ToFloat32(h)
	}
}

func (t Type) narrow(dst []byte, src []float32) {
	d := View[uint16](dst)[:len(src)]
	if t == BFloat16 {
		for i, f := range src {
			d[i] = Float32ToBFloat16(f)
		}
		return
	}
	for i, f := range src {
		d[i] = Float32ToFloat16(f)
	}
}

func (t Type) toFloat32(h uint16) float32 {
	if t == BFloat16 {
		return BFloat16ToFloat32(h)
	}
	return Float16ToFloat32(h)
}
