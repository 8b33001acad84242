package main

import "strings"

// A half is a type of 16 bits that is computed in float32.
type half struct {
	typ       string
	widen     code // hA to A
	narrow    code // A to hA
	loop      *loop
	combine   func(op string) code // A and B, as loop loads them, to A
	constants []constant
}

// oneNaN makes every NaN that in C.
var oneNaN = code{
	avx2:   "VCMPPS $3, A, A, T; VBLENDVPS T, C, A, A",
	avx512: "VCMPPS $3, A, A, K2; VMOVAPS C, K2, A",
}

var quietNaN = constant{"C", 0x7fc000007fc00000}

var float16 = half{
	typ:       "Float16",
	widen:     both("VCVTPH2PS hA, A"),
	narrow:    oneNaN.then(both("VCVTPS2PH $0, A, hA")),
	constants: []constant{quietNaN},
	loop:      binaryHalf,
	combine: func(op string) code {
		return both("VCVTPH2PS hA, A", "VCVTPH2PS hB, B").then(floatOp(op, "PS")).then(both("VCVTPS2PH $0, A, hA"))
	},
}

var bfloat16 = half{
	typ:   "BFloat16",
	widen: both("VPMOVZXWD hA, A", "VPSLLD $16, A, A"),
	narrow: oneNaN.then(round).then(both("VPSRLD $16, A, A")).then(code{
		avx2:   "VEXTRACTI128 $1, A, hT; VPACKUSDW hT, hA, hA",
		avx512: "VPMOVDW A, hA",
	}),
	constants: []constant{quietNaN, {"D", 0x0000000100000001}, {"E", 0x00007fff00007fff}, {"F", 0xffff0000ffff0000}},
	loop:      binary,
	combine:   oddAndEven,
}

// round makes the upper half of A that of the nearest bfloat16, the even one of two: it adds just less than a half, and
// a bit more if the lowest bit that stays is set. A NaN must have nothing below.
var round = both("VPSRLD $16, A, T", "VPAND D, T, T", "VPADDD E, A, A", "VPADDD T, A, A")

// oddAndEven combines elements that are upper halves of 32 bits as they are, and the others in P and Q.
func oddAndEven(op string) code {
	each := floatOp(op, "PS")
	if op == "Sum" || op == "Prod" {
		each = each.then(round)
	}
	merge := both("VPSRLD $16, P, P", "VPAND F, A, A", "VPOR P, A, A")
	return both("VPSLLD $16, A, P", "VPSLLD $16, B, Q").then(each.on("A", "P").on("B", "Q")).
		then(both("VPAND F, A, A", "VPAND F, B, B")).then(each).then(merge)
}

func (h half) kernels() (all []kernel) {
	for _, op := range floatOps {
		all = append(all, kernel{
			name: strings.ToLower(op) + h.typ, loop: h.loop, code: h.combine(op), constants: h.constants,
			cells: combine(op, h.typ),
		})
	}
	for _, op := range []string{"Sum", "Prod"} {
		all = append(all, kernel{
			name: "accumulate" + op + h.typ, loop: accumulating, code: h.widen.on("A", "B").then(floatOp(op, "PS")),
			cells: []cell{{"accumulate", h.typ, op}},
		})
	}
	return append(all,
		kernel{name: "widen" + h.typ, loop: widening, code: h.widen, cells: []cell{{"widen", h.typ, ""}}},
		kernel{name: "narrow" + h.typ, loop: narrowing, code: h.narrow, constants: h.constants, cells: []cell{{"narrow", h.typ, ""}}})
}
