package reduce

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Every level widens and narrows as portable Go does, wherever vectors are.
func TestLevelsConvertAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	base := portable()
	for _, l := range beyond(t) {
		for _, typ := range []Type{Float16, BFloat16} {
			for n := range 258 {
				half, float := random(r, typ, n), random(r, Float32, n)
				for _, misalignment := range []int{0, 1, 2, 31, 62} {
					check := func(what string, resultType Type, vector []byte, run func(l *level, v []byte)) {
						want := bytes.Clone(vector)
						run(base, want)
						var got field
						got.place(vector, misalignment)
						if run(l, got.vector); !same(resultType, got.vector, want) || !got.untouched() {
							t.Fatalf("%s: %s of %d of %v at %d:\n%x and\n%x is\n%x, want\n%x", l.name, what, n, typ, misalignment,
								half, float, got.vector, want)
						}
					}
					check("widen", Float32, float, func(l *level, v []byte) { l.widen[typ](View[float32](v), half) })
					check("narrow", Uint16, half, func(l *level, v []byte) { l.narrow[typ](v, View[float32](float)) })
					for _, op := range []Op{Sum, Prod} {
						check(op.String(), Float32, float, func(l *level, v []byte) { l.accumulate[typ][op](View[float32](v), half) })
					}
				}
			}
		}
	}
}

func TestLevelsConvertEveryHalfFloat(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, l := range beyond(t) {
		for _, typ := range []Type{Float16, BFloat16} {
			wide, want := make([]float32, len(all)), widened(typ, Bytes(all))
			if l.widen[typ](wide, Bytes(all)); !same(Float32, Bytes(wide), Bytes(want)) {
				t.Errorf("%s widens %v otherwise than portable Go", l.name, typ)
			}
			back, wantBack := make([]uint16, len(all)), make([]uint16, len(all))
			typ.narrow(Bytes(wantBack), want)
			if l.narrow[typ](Bytes(back), wide); !bytes.Equal(Bytes(back), Bytes(wantBack)) {
				t.Errorf("%s narrows %v otherwise than portable Go", l.name, typ)
			}
		}
	}
}

func TestLevelsScaleAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 6))
	base := portable()
	for _, l := range beyond(t) {
		for _, typ := range []Type{Int32, Float32, Float64, Complex64, Complex128} {
			for n := range 258 {
				v := random(r, typ, n)
				for _, by := range []float64{1, 3, -7, 1e-300, 1e30, 0.1} {
					if typ == Int32 {
						by = 3
					}
					product, quotient := bytes.Clone(v), bytes.Clone(v)
					base.multiply[typ](product, by)
					base.divide[typ](quotient, by)
					for _, misalignment := range []int{0, 3, 60} {
						var x, y field
						x.place(v, misalignment)
						y.place(v, misalignment)
						l.multiply[typ](x.vector, by)
						l.divide[typ](y.vector, by)
						if !same(typ, x.vector, product) || !x.untouched() {
							t.Fatalf("%s: %v times %v is wrong: %x, want %x", l.name, typ, by, x.vector, product)
						}
						if !same(typ, y.vector, quotient) || !y.untouched() {
							t.Fatalf("%s: %v by %v is wrong: %x, want %x", l.name, typ, by, y.vector, quotient)
						}
					}
				}
			}
		}
	}
}
