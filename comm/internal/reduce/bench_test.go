package reduce

import (
	"bytes"
	"fmt"
	"testing"
)

// sizes are those of vectors: in the first cache, in the second, in the last.
var sizes = []int{4 << 10, 256 << 10, 4 << 20}

// ones are those of a type, little-endian: of these sums and products are quick whatever the number of runs.
var ones = map[Type][]byte{
	Float32: {0, 0, 0x80, 0x3f}, Float64: {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, Float16: {0, 0x3c}, BFloat16: {0x80, 0x3f},
}

// measure reports the bytes of one operand that run gets through in a second, at every level.
func measure(b *testing.B, name string, t Type, run func(l *level, x, y []byte)) {
	for _, l := range every() {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%v/%dKiB/%s", name, t, size>>10, l.name), func(b *testing.B) {
				x, y := aligned(t, size), aligned(t, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					run(l, x, y)
				}
			})
		}
	}
}

// aligned is a vector of ones that starts a cache line.
func aligned(t Type, size int) []byte {
	one := append(ones[t.number()], 1)
	v := make([]byte, size+64)
	v = v[-address(v)&63:][:size]
	copy(v, bytes.Repeat(one[:max(1, len(one)-1)], size))
	return v
}

func BenchmarkCombine(b *testing.B) {
	all := every()
	for typ := Int8; typ < numTypes; typ++ {
		for op := Sum; op < numOps; op++ {
			if all[0].combine[typ][op] != nil {
				measure(b, op.String(), typ, func(l *level, x, y []byte) { l.combine[typ][op](x, x, y) })
			}
		}
	}
}

func BenchmarkHalves(b *testing.B) {
	for _, typ := range []Type{Float16, BFloat16} {
		measure(b, "Widen", typ, func(l *level, x, y []byte) { l.widen[typ](View[float32](x), y[:len(x)/2]) })
		measure(b, "Narrow", typ, func(l *level, x, y []byte) { l.narrow[typ](y[:len(x)/2], View[float32](x)) })
	}
}

func BenchmarkScale(b *testing.B) {
	for _, typ := range []Type{Int32, Float32, Float64} {
		measure(b, "Multiply", typ, func(l *level, x, _ []byte) { l.multiply[typ](x, 1) })
		measure(b, "Divide", typ, func(l *level, x, _ []byte) { l.divide[typ](x, 1) })
	}
}
