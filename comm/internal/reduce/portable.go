package reduce

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type ordered interface {
	integer | ~float32 | ~float64
}

type number interface {
	ordered | ~complex64 | ~complex128
}

// portable returns the level that every machine has.
func portable() *level {
	l := &level{name: "portable"}
	addIntegers[int8](l, Int8)
	addIntegers[int16](l, Int16)
	addIntegers[int32](l, Int32)
	addIntegers[int64](l, Int64)
	addIntegers[uint8](l, Uint8)
	addIntegers[uint16](l, Uint16)
	addIntegers[uint32](l, Uint32)
	addIntegers[uint64](l, Uint64)
	addFloats[float32, complex64](l, Float32, Complex64)
	addFloats[float64, complex128](l, Float64, Complex128)
	addHalves(l, Float16)
	addHalves(l, BFloat16)
	return l
}

// addIntegers adds the functions of T, whose number is t, to l.
func addIntegers[T integer](l *level, t Type) {
	k := inOrder[T]()
	k[And], k[Or], k[Xor] = and[T], or[T], xor[T]
	k[LogicalAnd], k[LogicalOr], k[LogicalXor] = logicalAnd[T], logicalOr[T], logicalXor[T]
	l.combine[t], l.multiply[t], l.divide[t] = k, multiplyIntegers[T], divideIntegers[T]
}

// addFloats adds the functions of F and of C, complex numbers made of two F, to l. Both parts of a complex number are
// scaled alike.
func addFloats[F float32 | float64, C complex64 | complex128](l *level, f, c Type) {
	l.combine[f], l.multiply[f], l.divide[f] = inOrder[F](), multiplyFloats[F], divideFloats[F]
	l.combine[c], l.multiply[c], l.divide[c] = [numOps]Kernel{Sum: sum[C], Prod: prod[C]}, multiplyFloats[F], divideFloats[F]
}

// inOrder returns the kernels that every type has whose values are in order.
func inOrder[T ordered]() [numOps]Kernel {
	return [numOps]Kernel{
		Sum: sum[T], Prod: prod[T], Min: minimum[T], Max: maximum[T],
		MinLoc: pairs(lowest[T], lowest[T]), MaxLoc: pairs(highest[T], lowest[T]),
	}
}

// The following loops are written out, because a call for each element would cost several times as much as the
// operation.

func sum[T number](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func prod[T number](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func minimum[T ordered](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func maximum[T ordered](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func and[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func or[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func xor[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

func logicalAnd[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = truth[T](x[i] != 0) & truth[T](y[i] != 0)
	}
}

func logicalOr[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = truth[T](x[i]|y[i] != 0)
	}
}

func logicalXor[T integer](dst, a, b []byte) {
	d, x, y := operands[T](dst, a, b)
	for i := range d {
		d[i] = truth[T](x[i] != 0) ^ truth[T](y[i] != 0)
	}
}

func truth[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

func operands[T any](dst, a, b []byte) (d, x, y []T) {
	d = View[T](dst)
	return d, View[T](a)[:len(d)], View[T](b)[:len(d)]
}
