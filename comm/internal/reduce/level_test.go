package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

const margin = 64 // bytes around a vector that must stay as they are, and the misalignments that are tried

var around = bytes.Repeat([]byte{0xa5}, margin)

// A field is a vector somewhere in memory.
type field struct {
	memory, vector []byte
	start          int // of vector in memory
}

// place puts v at the given misalignment.
func (f *field) place(v []byte, misalignment int) {
	if cap(f.memory) < len(v)+3*margin {
		f.memory = make([]byte, len(v)+3*margin)
	}
	f.memory = f.memory[:len(v)+3*margin]
	f.start = margin + (misalignment-address(f.memory))&(margin-1)
	f.vector = f.memory[f.start : f.start+len(v)]
	copy(f.memory[f.start-margin:], around)
	copy(f.memory[f.start+len(v):], around)
	copy(f.vector, v)
}

// address is that of v, which is not empty.
func address(v []byte) int { return int(uintptr(unsafe.Pointer(&v[0]))) }

// untouched reports whether nothing around the vector was written.
func (f *field) untouched() bool {
	end := f.start + len(f.vector)
	return bytes.Equal(f.memory[f.start-margin:f.start], around) && bytes.Equal(f.memory[end:end+margin], around)
}

// element is a random element of t, as its bits: every second one is special.
func element(r *rand.Rand, t Type) uint64 {
	if r.IntN(2) == 0 {
		return r.Uint64()
	}
	special := []uint64{0, 1, math.MaxUint64, 1 << 7, 1<<7 - 1, 1 << 15, 1<<15 - 1, 1 << 31, 1<<31 - 1, 1 << 63, 1<<63 - 1}
	switch t {
	case Float32, Complex64:
		special = []uint64{
			0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 1, 0x80000001, 0x007fffff, 0x7f7fffff,
			0xff7fffff, 0x3f800000, 0xbf800000, 0x00800000,
		}
	case Float64, Complex128:
		special = []uint64{
			0, 1 << 63, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48, 0xfff8<<48 | 1, 0x7ff0<<48 | 1, 1, 1<<63 | 1, 1<<52 - 1,
			0x7ff0<<48 - 1, 0xfff0<<48 - 1, 0x3ff0 << 48, 0xbff0 << 48, 1 << 52,
		}
	case Float16:
		special = []uint64{0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 1, 0x8001, 0x03ff, 0x7bff, 0xfbff, 0x3c00, 0xbc00, 0x0400}
	case BFloat16:
		special = []uint64{0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 1, 0x8001, 0x007f, 0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x0080}
	default:
	}
	return special[r.IntN(len(special))]
}

// number is the type of the numbers that t's elements are made of.
func (t Type) number() Type {
	switch t {
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	default:
		return t
	}
}

// random is n elements of t.
func random(r *rand.Rand, t Type, n int) []byte {
	size := t.number().Size()
	v := make([]byte, 0, n*t.Size()+8)
	for len(v) < n*t.Size() {
		v = binary.LittleEndian.AppendUint64(v, element(r, t))[:len(v)+size]
	}
	return v
}

// same reports whether got is want, or where want has a NaN another one.
func same(t Type, got, want []byte) bool {
	if bytes.Equal(got, want) {
		return true
	}
	switch t.number() {
	case Float32:
		return sameFloats(View[float32](got), View[float32](want), math.Float32bits)
	case Float64:
		return sameFloats(View[float64](got), View[float64](want), math.Float64bits)
	case Float16, BFloat16:
		return sameFloats(widened(t, got), widened(t, want), math.Float32bits)
	default:
		return false
	}
}

// widened is the value of v, which is of a half type, by portable Go.
func widened(t Type, v []byte) []float32 {
	wide := make([]float32, len(v)/2)
	t.widen(wide, v)
	return wide
}

func sameFloats[F float32 | float64, U comparable](got, want []F, bits func(F) U) bool {
	for i := range want {
		if bits(got[i]) != bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			return false
		}
	}
	return true
}

// every is the levels of this machine, the portable one first.
func every() (all []*level) {
	for _, name := range levels() {
		all = append(all, newLevel(name))
	}
	return all
}

// beyond are the levels beyond portable Go.
func beyond(t *testing.T) []*level {
	if len(levels()) == 1 {
		t.Skip("this machine has the portable level only")
	}
	return every()[1:]
}

// Every level computes what portable Go does, wherever vectors are, and writes nothing else.
func TestLevelsAgree(t *testing.T) {
	for _, l := range beyond(t) {
		for typ := Int8; typ < numTypes; typ++ {
			t.Run(fmt.Sprint(l.name, "/", typ), func(t *testing.T) {
				t.Parallel()
				for op := Sum; op <= LogicalXor; op++ {
					if l.combine[typ][op] != nil {
						agree(t, l, typ, op)
					}
				}
			})
		}
	}
}

func agree(t *testing.T, l *level, typ Type, op Op) {
	r := rand.New(rand.NewPCG(uint64(typ), uint64(op)))
	var left, right, third field
	for n := range 258 {
		a, b := random(r, typ, n), random(r, typ, n)
		want := make([]byte, len(a))
		portable().combine[typ][op](want, a, b)
		for misalignment := n % 4; misalignment < margin; misalignment += 4 { // every one with a quarter of the lengths
			left.place(a, misalignment)
			right.place(b, 5*misalignment%margin)
			third.place(a, 11*misalignment%margin)
			dst := []*field{&left, &right, &third}[misalignment/4%3]
			l.combine[typ][op](dst.vector, left.vector, right.vector)
			if !same(typ, dst.vector, want) {
				t.Fatalf("%v of %d at %d:\n%x and\n%x is\n%x, want\n%x", op, n, misalignment, a, b, dst.vector, want)
			}
			if !left.untouched() || !right.untouched() || !third.untouched() {
				t.Fatalf("%v of %d at %d writes beyond the end", op, n, misalignment)
			}
			if dst != &left && !bytes.Equal(left.vector, a) || dst != &right && !bytes.Equal(right.vector, b) {
				t.Fatalf("%v of %d at %d changes an operand", op, n, misalignment)
			}
		}
	}
}

// Vectors that take more than one call of assembly.
func TestLevelsAgreeOnLongVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 6))
	base := portable()
	for _, l := range beyond(t) {
		for _, typ := range []Type{Int8, Uint64, Float32, Complex128, BFloat16} {
			for _, length := range []int{block + 64, 256<<10 + 16, 600<<10 - 48} {
				a, b := random(r, typ, length/typ.Size()), random(r, typ, length/typ.Size())
				want := make([]byte, length)
				base.combine[typ][Sum](want, a, b)
				for _, misalignment := range []int{0, 1, typ.Size(), 32} {
					var left, right field
					left.place(a, misalignment)
					right.place(b, 8)
					l.combine[typ][Sum](left.vector, left.vector, right.vector)
					if !same(typ, left.vector, want) || !left.untouched() {
						t.Errorf("%s: the sum of %d bytes of %v at %d is wrong", l.name, length, typ, misalignment)
					}
				}
			}
		}
	}
}

func FuzzLevelsAgree(f *testing.F) {
	f.Add(byte(Float32), byte(Min), byte(4), []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0x80, 0, 0, 0, 0, 1, 2, 3, 4})
	f.Add(byte(BFloat16), byte(Sum), byte(1), []byte{0xff, 0x7f, 1, 0, 0xff, 0xff, 1, 0x80})
	all := every()
	f.Fuzz(func(t *testing.T, typ, op, misalignment byte, operands []byte) {
		if For(Type(typ), Op(op)) == nil {
			return
		}
		value := 2 * Type(typ).Size() // pairs, for the operations on those
		half := len(operands) / 2 / value * value
		a, b := operands[:half], operands[half:2*half]
		want := make([]byte, half)
		all[0].combine[typ][op](want, a, b)
		for _, l := range all {
			var left, right field
			left.place(a, int(misalignment)%margin)
			right.place(b, int(misalignment)/4)
			l.combine[typ][op](left.vector, left.vector, right.vector)
			if !same(Type(typ), left.vector, want) || !left.untouched() {
				t.Errorf("%s: %v of %v: %x and %x is %x, want %x", l.name, Op(op), Type(typ), a, b, left.vector, want)
			}
		}
	})
}

func TestChoiceOfLevel(t *testing.T) {
	all := []string{"portable", "avx2"}
	for wanted, want := range map[string]string{"": "avx2", "avx2": "avx2", "portable": "portable"} {
		if got, err := choose(wanted, all); err != nil || got != want {
			t.Errorf("%q chooses %s (%v), want %s", wanted, got, err, want)
		}
	}
	const want = "GORUN_KERNELS=avx512: this machine has portable, avx2"
	if got, err := choose("avx512", all); err == nil || err.Error() != want || got != "avx2" {
		t.Errorf("avx512 chooses %s (%v), want avx2 and %q", got, err, want)
	}
}
