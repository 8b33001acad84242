package reduce

import "math"

// BFloat16ToFloat32 is exact.
func BFloat16ToFloat32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// Float32ToBFloat16 rounds to nearest even; every NaN becomes 0x7fc0.
func Float32ToBFloat16(f float32) uint16 {
	if f != f {
		return 0x7fc0
	}
	bits := math.Float32bits(f)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float16ToFloat32 is exact; every NaN stays a NaN.
func Float16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0x1f: // infinity, NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case 0: // zero, subnormal: frac units of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*(1.0/(1<<24))))
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// Float32ToFloat16 rounds to nearest even; what is too large becomes infinity, every NaN 0x7e00.
func Float32ToFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return 0x7e00
	case abs >= 0x477ff000: // 65520 and up rounds to infinity
		return sign | 0x7c00
	case abs < 0x38800000: // below the smallest normal: let the adder round to units of 2^-24
		unit := math.Float32frombits(abs) + 0.5
		return sign | uint16(math.Float32bits(unit)-math.Float32bits(0.5))
	}
	abs += 0xfff + abs>>13&1
	return sign | uint16((abs-(127-15)<<23)>>13)
}
