package reduce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// folded is what Fold is to make, one operation at a time.
func folded(l *level, t Type, o Op, srcs [][]byte) []byte {
	if l.accumulate[t][o] != nil { // wide up to the end
		acc, next := widened(t, srcs[0]), make([]float32, len(srcs[0])/2)
		for _, src := range srcs[1:] {
			t.widen(next, src)
			o.combine(acc, next)
		}
		result := make([]byte, len(srcs[0]))
		t.narrow(result, acc)
		return result
	}
	acc := bytes.Clone(srcs[0])
	for _, src := range srcs[1:] {
		l.combine[t][o](acc, acc, src)
	}
	return acc
}

func TestFoldKeepsTheOrderOfOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	for _, l := range every() {
		for _, c := range []struct {
			typ Type
			op  Op
		}{{Float32, Sum}, {Int16, MinLoc}, {Complex128, Prod}, {Float16, Sum}, {BFloat16, Prod}, {BFloat16, Max}} {
			for _, length := range []int{0, 32, block / 2, block, 2*block + 48} {
				for n := 1; n <= 5; n++ {
					for into := range n + 1 { // one of the operands, or apart
						foldInto(t, r, l, c.typ, c.op, length, n, into)
					}
				}
			}
		}
	}
}

func foldInto(t *testing.T, r *rand.Rand, l *level, typ Type, op Op, length, n, into int) {
	srcs := make([][]byte, n)
	for i := range srcs {
		srcs[i] = random(r, typ, length/typ.Size())
	}
	want := folded(l, typ, op, srcs)
	dst := make([]byte, length)
	if into < n {
		dst = srcs[into]
	}
	if l.fold(typ, op, dst, srcs); !same(typ, dst, want) {
		t.Fatalf("%s: %v of %d vectors of %d bytes of %v into number %d is wrong", l.name, op, n, length, typ, into)
	}
}

// The sum of many small numbers with a large one shows how often it is rounded.
func TestFoldRoundsHalfFloatsOnce(t *testing.T) {
	srcs := make([][]byte, 9)
	for i := range srcs {
		srcs[i] = Bytes([]uint16{Float32ToBFloat16(1)})
	}
	srcs[0] = Bytes([]uint16{Float32ToBFloat16(256)}) // and 1 is half of what its last bit means
	dst := make([]uint16, 1)
	Fold(BFloat16, Sum, Bytes(dst), srcs)
	if got := BFloat16ToFloat32(dst[0]); got != 264 {
		t.Errorf("256 and eight times 1 is %v, want 264", got)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, typ := range []Type{Float32, Float16} {
		srcs := [][]byte{make([]byte, 3*block), make([]byte, 3*block), make([]byte, 3*block)}
		wide := make([]float32, 100)
		for name, run := range map[string]func(){
			"Fold":   func() { Fold(typ, Sum, srcs[2], srcs) },
			"Kernel": func() { For(typ, Sum)(srcs[0], srcs[0], srcs[1]) },
			"Widen":  func() { Widen(BFloat16, wide, srcs[0][:200]) },
			"Narrow": func() { Narrow(BFloat16, srcs[0][:200], wide) },
			"Scale":  func() { Scale(Float64, srcs[0], 2) },
		} {
			if n := testing.AllocsPerRun(100, run); n != 0 {
				t.Errorf("%s of %v allocates %v times", name, typ, n)
			}
		}
	}
}

func BenchmarkFold(b *testing.B) {
	for _, typ := range []Type{Float32, BFloat16} {
		for _, n := range []int{2, 4, 8} {
			srcs := make([][]byte, n)
			for i := range srcs {
				srcs[i] = aligned(typ, sizes[len(sizes)-1])
			}
			parts := make([][]byte, n)
			measure(b, fmt.Sprint("of", n), typ, func(l *level, x, _ []byte) {
				for i := range parts {
					parts[i] = srcs[i][:len(x)]
				}
				l.fold(typ, Sum, x, parts)
			})
		}
	}
}
