package reduce

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHalfFloatsConvertExactlyThereAndBack(t *testing.T) {
	for name, c := range map[string]struct {
		widen  func(uint16) float32
		narrow func(float32) uint16
	}{
		"Float16": {Float16ToFloat32, Float32ToFloat16}, "BFloat16": {BFloat16ToFloat32, Float32ToBFloat16},
	} {
		for h := range 1 << 16 {
			f := c.widen(uint16(h))
			if back := c.narrow(f); back != uint16(h) && f == f {
				t.Errorf("%s %#04x is %v and comes back as %#04x", name, h, f, back)
			}
			if back := c.widen(c.narrow(f)); f != f && back == back {
				t.Errorf("%s %#04x is NaN and comes back as %v", name, h, back)
			}
		}
	}
	for bits, want := range map[uint16]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: math.Ldexp(1, -24), 0x0400: math.Ldexp(1, -14), 0xfc00: math.Inf(-1)} {
		if got := Float16ToFloat32(bits); float64(got) != want {
			t.Errorf("Float16 %#04x is %v, want %v", bits, got, want)
		}
	}
}

// nearest finds the half float nearest to f by looking at its two neighbours; a tie goes to the even one.
func nearest(f float32, widen func(uint16) float32, infinity uint16, beyond float64) uint16 {
	sign := uint16(math.Float32bits(f) >> 16 & 0x8000)
	abs := math.Abs(float64(f))
	above, _ := slices.BinarySearchFunc(slices.Collect(func(yield func(uint16) bool) {
		for h := range infinity {
			if !yield(h) {
				return
			}
		}
	}), abs, func(h uint16, x float64) int {
		if float64(widen(h)) < x {
			return -1
		}
		return 1
	})
	value := func(h int) float64 {
		if h == int(infinity) {
			return beyond // where the next finite number would be
		}
		return float64(widen(uint16(h)))
	}
	best := above
	if above > 0 {
		lower := abs - value(above-1)
		upper := value(above) - abs
		if lower < upper || lower == upper && (above-1)%2 == 0 {
			best = above - 1
		}
	}
	return sign | uint16(best)
}

func TestHalfFloatsRoundToNearestEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exp := rapid.IntRange(-30, 18).Draw(t, "exponent")
		f := float32(math.Ldexp(rapid.Float64Range(-2, 2).Draw(t, "fraction"), exp))
		if rapid.Bool().Draw(t, "tie") { // exactly between two
			h := uint16(rapid.IntRange(0, 0x7bfe).Draw(t, "h"))
			f = float32((float64(Float16ToFloat32(h)) + float64(Float16ToFloat32(h+1))) / 2)
		}
		if got, want := Float32ToFloat16(f), nearest(f, Float16ToFloat32, 0x7c00, 65536); got != want {
			t.Fatalf("Float16 of %v is %#04x, want %#04x", f, got, want)
		}
		if got, want := Float32ToBFloat16(f), nearest(f, BFloat16ToFloat32, 0x7f80, math.Ldexp(1, 128)); got != want {
			t.Fatalf("BFloat16 of %v is %#04x, want %#04x", f, got, want)
		}
	})
}

func TestWhatHasNoMeaningHasNoKernel(t *testing.T) {
	for typ := Int8; typ < numTypes; typ++ {
		for op := Sum; op < numOps; op++ {
			isInt := typ <= Uint64
			isComplex := typ == Complex64 || typ == Complex128
			isBits := op >= And && op <= LogicalXor
			want := isInt || op == Sum || op == Prod || !isBits && !isComplex
			if got := For(typ, op) != nil; got != want {
				t.Errorf("%v of %v: has a kernel: %v, want %v", op, typ, got, want)
			}
		}
	}
	if For(99, Sum) != nil || For(Int8, 99) != nil || For(0, 0) != nil {
		t.Error("numbers that mean nothing have a kernel")
	}
}

func TestSpecialValues(t *testing.T) {
	nan, inf, negZero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		op         Op
		a, b, want float32
	}{
		{Min, nan, 1, nan}, {Min, 1, nan, nan}, {Max, nan, 1, nan}, {Max, 1, nan, nan},
		{Min, 0, negZero, negZero}, {Min, negZero, 0, negZero}, {Max, 0, negZero, 0}, {Max, negZero, 0, 0},
		{Sum, inf, -inf, nan}, {Sum, math.MaxFloat32, math.MaxFloat32, inf}, {Prod, 0, inf, nan}, {Max, -inf, 3, 3},
	} {
		d, s := []float32{c.a}, []float32{c.b}
		For(Float32, c.op)(Bytes(d), Bytes(d), Bytes(s))
		if math.Float32bits(d[0]) != math.Float32bits(c.want) && (d[0] == d[0] || c.want == c.want) {
			t.Errorf("%v(%v, %v) = %v, want %v", c.op, c.a, c.b, d[0], c.want)
		}
		h, g := []uint16{Float32ToBFloat16(c.a)}, []uint16{Float32ToBFloat16(c.b)}
		For(BFloat16, c.op)(Bytes(h), Bytes(h), Bytes(g))
		if want := Float32ToBFloat16(c.want); !same(BFloat16, Bytes(h), Bytes([]uint16{want})) {
			t.Errorf("BFloat16 %v(%v, %v) = %#x, want %#x", c.op, c.a, c.b, h[0], want)
		}
	}
}

func TestIntegersWrapAndTruncate(t *testing.T) {
	d := []int8{127, -128, 100}
	For(Int8, Sum)(Bytes(d), Bytes(d), Bytes([]int8{1, -1, 100}))
	if want := []int8{-128, 127, -56}; !slices.Equal(d, want) {
		t.Errorf("sums %v, want %v", d, want)
	}
	d = []int8{-7, 7, 100}
	Divide(Int8, Bytes(d), 2)
	if want := []int8{-3, 3, 50}; !slices.Equal(d, want) {
		t.Errorf("halves %v, want %v", d, want)
	}
	Divide(Int8, Bytes(d), 1000) // more ranks than an int8 can count
	if want := []int8{0, 0, 0}; !slices.Equal(d, want) {
		t.Errorf("thousandths %v, want %v", d, want)
	}
	u := []uint64{math.MaxUint64}
	Divide(Uint64, Bytes(u), 2)
	if u[0] != math.MaxInt64 {
		t.Errorf("half of the largest uint64 is %d", u[0])
	}
	Scale(Uint64, Bytes(u), 2)
	if u[0] != math.MaxUint64-1 {
		t.Errorf("twice that is %d", u[0])
	}
}

func TestLogicalOperations(t *testing.T) {
	a, b := []int16{5, 5, 0, 0}, []int16{-3, 0, 2, 0}
	for op, want := range map[Op][]int16{LogicalAnd: {1, 0, 0, 0}, LogicalOr: {1, 1, 1, 0}, LogicalXor: {0, 1, 1, 0}} {
		d := slices.Clone(a)
		For(Int16, op)(Bytes(d), Bytes(d), Bytes(b))
		if !slices.Equal(d, want) {
			t.Errorf("%v is %v, want %v", op, d, want)
		}
	}
	Normalize(Int16, Bytes(b))
	if want := []int16{1, 0, 1, 0}; !slices.Equal(b, want) {
		t.Errorf("normalized %v, want %v", b, want)
	}
}

// The kernel of a located operation does not depend on the order of its operands.
func TestLocatedOperations(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		op         Op
		a, b, want [2]float64
	}{
		{MinLoc, [2]float64{1, 7}, [2]float64{2, 3}, [2]float64{1, 7}},
		{MaxLoc, [2]float64{1, 7}, [2]float64{2, 3}, [2]float64{2, 3}},
		{MinLoc, [2]float64{2, 7}, [2]float64{2, 3}, [2]float64{2, 3}},
		{MaxLoc, [2]float64{2, 3}, [2]float64{2, 7}, [2]float64{2, 3}},
		{MinLoc, [2]float64{nan, 7}, [2]float64{2, 3}, [2]float64{nan, 7}},
		{MaxLoc, [2]float64{nan, 7}, [2]float64{2, 3}, [2]float64{nan, 7}},
		{MaxLoc, [2]float64{nan, 7}, [2]float64{nan, 3}, [2]float64{nan, 3}},
	} {
		for range 2 {
			check := func(got [2]float64, typ string) {
				if got[1] != c.want[1] || got[0] != c.want[0] && (got[0] == got[0] || c.want[0] == c.want[0]) {
					t.Errorf("%s %v of %v and %v is %v, want %v", typ, c.op, c.a, c.b, got, c.want)
				}
			}
			d := c.b
			For(Float64, c.op)(Bytes(d[:]), Bytes(c.a[:]), Bytes(d[:])) // into the right operand
			check(d, "float64")
			h, g := half2(c.a), half2(c.b)
			For(Float16, c.op)(Bytes(h), Bytes(h), Bytes(g))
			check([2]float64{float64(Float16ToFloat32(h[0])), float64(Float16ToFloat32(h[1]))}, "Float16")
			c.a, c.b = c.b, c.a
		}
	}
}

func half2(v [2]float64) []uint16 {
	return []uint16{Float32ToFloat16(float32(v[0])), Float32ToFloat16(float32(v[1]))}
}

func TestCustomOperationsKeepTheOrderOfOperands(t *testing.T) {
	minus := Custom(func(acc, in []int32) {
		for i := range acc {
			acc[i] -= in[i]
		}
	})
	a, b := []int32{10, 20}, []int32{1, 2}
	minus(Bytes(a), Bytes(a), Bytes(b))
	if want := []int32{9, 18}; !slices.Equal(a, want) {
		t.Errorf("into the left: %v, want %v", a, want)
	}
	c := make([]int32, 2)
	minus(Bytes(c), Bytes(a), Bytes(b))
	if want := []int32{8, 16}; !slices.Equal(c, want) || !slices.Equal(a, []int32{9, 18}) || !slices.Equal(b, []int32{1, 2}) {
		t.Errorf("apart: %v of %v and %v, want %v", c, a, b, want)
	}
	minus(Bytes(b), Bytes(a), Bytes(b))
	if want := []int32{8, 16}; !slices.Equal(b, want) {
		t.Errorf("into the right: %v, want %v", b, want)
	}
}
