package main

import (
	"fmt"
	"strings"
)

// A width is that of an integer.
type width struct {
	bits   int
	letter string // in the names of instructions
	ones   uint64 // a 1 in every integer
}

var widths = []width{
	{8, "B", 0x0101010101010101}, {16, "W", 0x0001000100010001}, {32, "D", 0x0000000100000001}, {64, "Q", 1},
}

func (w width) int() string  { return fmt.Sprintf("Int%d", w.bits) }
func (w width) uint() string { return fmt.Sprintf("Uint%d", w.bits) }

// bitwise are the operations that do not care where an element ends.
func bitwise() (all []kernel) {
	var integers []string
	for _, w := range widths {
		integers = append(integers, w.int(), w.uint())
	}
	for _, op := range []string{"And", "Or", "Xor"} {
		all = append(all, kernel{
			name: strings.ToLower(op), loop: binary, cells: combine(op, integers...),
			code: both("VP" + strings.ToUpper(op) + " B, A, A"),
		})
	}
	return all
}

func (w width) arithmetic() []kernel {
	sum := kernel{
		name: "sum" + w.int(), loop: binary, cells: combine("Sum", w.int(), w.uint()),
		code: both("VPADD" + w.letter + " B, A, A"),
	}
	return []kernel{sum, w.prod(), w.choose("Min", w.int()), w.choose("Max", w.int()),
		w.choose("Min", w.uint()), w.choose("Max", w.uint())}
}

func (w width) prod() kernel {
	k := kernel{
		name: "prod" + w.int(), loop: binary, cells: combine("Prod", w.int(), w.uint()),
		code: both("VPMULL" + w.letter + " B, A, A"),
	}
	switch w.bits {
	case 8: // the odd bytes and the even ones, each as the upper or lower half of a product
		k.constants = []constant{{"C", 0xff00ff00ff00ff00}}
		k.code = both("VPSRLW $8, A, T", "VPAND C, B, U", "VPMULLW U, T, T", "VPMULLW B, A, A", "VPANDN A, C, A", "VPOR T, A, A")
	case 64:
		k.code.avx2 = "" // has no such product, and scalars are as fast as what would make one
	}
	return k
}

// choose is Min or Max of typ, signed or not.
func (w width) choose(op, typ string) kernel {
	sign := map[bool]string{true: "S", false: "U"}[typ == w.int()]
	k := kernel{
		name: strings.ToLower(op) + typ, loop: binary, cells: combine(op, typ),
		code: both("VP" + strings.ToUpper(op) + sign + w.letter + " B, A, A"),
	}
	if w.bits < 64 {
		return k
	}
	// AVX2 has no such minimum, and compares signed integers only.
	compare := "VPCMPGTQ B, A, T"
	if sign == "U" {
		compare = "VPXOR C, A, T; VPXOR C, B, U; VPCMPGTQ U, T, T"
		k.constants = []constant{{"C", 1 << 63}}
	}
	blend := map[string]string{"Min": "VBLENDVPD T, B, A, A", "Max": "VBLENDVPD T, A, B, A"}[op]
	k.code.avx2 = compare + "; " + blend
	return k
}

// logic makes 0 or 1 of every element: the lesser of it, unsigned, and 1.
func (w width) logic() []kernel {
	truth := func(register string) string { return fmt.Sprintf("VPMINU%s C, %s, %[2]s", w.letter, register) }
	and := both(truth("A"), truth("B"), "VPAND B, A, A")
	or := both("VPOR B, A, A", truth("A"))
	xor := both(truth("A"), truth("B"), "VPXOR B, A, A")
	constants := []constant{{"C", w.ones}}
	if w.bits == 64 { // AVX2 has no such minimum: find the zeros
		constants = append(constants, constant{"D", 0})
		and.avx2 = "VPCMPEQQ D, A, A; VPCMPEQQ D, B, B; VPOR B, A, A; VPANDN C, A, A"
		or.avx2 = "VPOR B, A, A; VPCMPEQQ D, A, A; VPANDN C, A, A"
		xor.avx2 = "VPCMPEQQ D, A, A; VPCMPEQQ D, B, B; VPXOR B, A, A; VPAND C, A, A"
	}
	logical := func(op string, c code) kernel {
		return kernel{
			name: fmt.Sprintf("logical%s%d", op, w.bits), loop: binary, code: c, constants: constants,
			cells: combine("Logical"+op, w.int(), w.uint()),
		}
	}
	return []kernel{logical("And", and), logical("Or", or), logical("Xor", xor)}
}
