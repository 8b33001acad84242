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
	return &level{
		name: "portable",
		combine: [numTypes][numOps]Kernel{
			Int8:       integers[int8](),
			Int16:      integers[int16](),
			Int32:      integers[int32](),
			Int64:      integers[int64](),
			Uint8:      integers[uint8](),
			Uint16:     integers[uint16](),
			Uint32:     integers[uint32](),
			Uint64:     integers[uint64](),
			Float32:    floats[float32](),
			Float64:    floats[float64](),
			Complex64:  {Sum: sum[complex64], Prod: prod[complex64]},
			Complex128: {Sum: sum[complex128], Prod: prod[complex128]},
			Float16:    halves(Float16),
			BFloat16:   halves(BFloat16),
		},
		accumulate: [numTypes][numOps]func(acc []float32, src []byte){
			Float16:  {Sum: accumulating(Float16, Sum), Prod: accumulating(Float16, Prod)},
			BFloat16: {Sum: accumulating(BFloat16, Sum), Prod: accumulating(BFloat16, Prod)},
		},
		widen:  [numTypes]func([]float32, []byte){Float16: Float16.widen, BFloat16: BFloat16.widen},
		narrow: [numTypes]func([]byte, []float32){Float16: Float16.narrow, BFloat16: BFloat16.narrow},
		multiply: [numTypes]func([]byte, float64){
			Int8: multiplyIntegers[int8], Int16: multiplyIntegers[int16],
			Int32: multiplyIntegers[int32], Int64: multiplyIntegers[int64],
			Uint8: multiplyIntegers[uint8], Uint16: multiplyIntegers[uint16],
			Uint32: multiplyIntegers[uint32], Uint64: multiplyIntegers[uint64],
			Float32: multiplyFloats[float32], Float64: multiplyFloats[float64],
			Complex64: multiplyFloats[float32], Complex128: multiplyFloats[float64], // both parts alike
		},
		divide: [numTypes]func([]byte, float64){
			Int8: divideIntegers[int8], Int16: divideIntegers[int16],
			Int32: divideIntegers[int32], Int64: divideIntegers[int64],
			Uint8: divideIntegers[uint8], Uint16: divideIntegers[uint16],
			Uint32: divideIntegers[uint32], Uint64: divideIntegers[uint64],
			Float32: divideFloats[float32], Float64: divideFloats[float64],
			Complex64: divideFloats[float32], Complex128: divideFloats[float64],
		},
	}
}

func floats[T ordered]() [numOps]Kernel {
	return [numOps]Kernel{
		Sum: sum[T], Prod: prod[T], Min: minimum[T], Max: maximum[T],
		MinLoc: pairs(lowest[T], lowest[T]), MaxLoc: pairs(highest[T], lowest[T]),
	}
}

func integers[T integer]() [numOps]Kernel {
	k := floats[T]()
	k[And], k[Or], k[Xor] = and[T], or[T], xor[T]
	k[LogicalAnd], k[LogicalOr], k[LogicalXor] = logicalAnd[T], logicalOr[T], logicalXor[T]
	return k
}

// The following loops are written out, because a call for each element would cost several times as much as the operation.

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
