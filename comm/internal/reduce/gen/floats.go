package main

import "strings"

var floatOps = []string{"Sum", "Prod", "Min", "Max"}

// floatOp is an operation on floats; suffix says of which size.
//
// VMIN and VMAX give their second operand if one is NaN or both are zeros, so they are asked in both orders. The bits
// that are set in either answer are Min: -0 if there is one, or a NaN. Those set in both are Max, but for NaN, which is
// looked for. VRANGE 5 is Max and knows the order of zeros.
func floatOp(op, suffix string) code {
	return map[string]code{
		"Sum":  both("VADD? B, A, A"),
		"Prod": both("VMUL? B, A, A"),
		"Min":  both("VMIN? B, A, T", "VMIN? A, B, A", "VOR? T, A, A"),
		"Max": {
			avx2:   "VCMP? $3, B, A, T; VMAX? B, A, U; VMAX? A, B, A; VAND? U, A, A; VOR? T, A, A",
			avx512: "VCMP? $3, B, A, K2; VADD? B, A, T; VRANGE? $5, B, A, A; VMOVA? T, K2, A",
		},
	}[op].sized(suffix)
}

// floats are the kernels of a type, and what they do for the complex numbers made of it.
func floats(typ, suffix, complex string) (all []kernel) {
	for _, op := range floatOps {
		cells := combine(op, typ)
		if op == "Sum" {
			cells = combine(op, typ, complex)
		}
		all = append(all, kernel{name: strings.ToLower(op) + typ, loop: binary, code: floatOp(op, suffix), cells: cells})
	}
	by := map[string]*loop{"PS": scale32, "PD": scale64}[suffix]
	return append(all,
		kernel{
			name: "multiply" + typ, loop: by, code: both("VMUL" + suffix + " C, A, A"),
			cells: []cell{{"multiply", typ, ""}, {"multiply", complex, ""}},
		},
		kernel{
			name: "divide" + typ, loop: by, code: both("VDIV" + suffix + " C, A, A"),
			cells: []cell{{"divide", typ, ""}, {"divide", complex, ""}},
		})
}
