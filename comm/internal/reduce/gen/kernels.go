package main

import (
	"regexp"
	"slices"
	"strings"
)

// A kernel is a function in assembly at each level: a loop around the instructions that combine one vector.
type kernel struct {
	name      string
	loop      *loop
	code      code
	constants []constant // of which code may use some
	cells     []cell     // where the table has it
}

// code is the instructions of a kernel at each level, separated by "; ", or "" where a level has no such kernel.
//
// A is a vector of the left operand and in the end of the result, B one of the right operand, P, Q, T and U are free, C
// to F hold constants, hA is A at half its width. K2 is a free mask of AVX-512.
type code struct{ avx2, avx512 string }

// both is code that is the same at both levels.
func both(instructions ...string) code {
	text := strings.Join(instructions, "; ")
	return code{text, text}
}

// then is c followed by next.
func (c code) then(next code) code {
	return code{c.avx2 + "; " + next.avx2, c.avx512 + "; " + next.avx512}
}

// on is c with register new in place of old.
func (c code) on(old, new string) code {
	r := regexp.MustCompile(`\b(h?)` + old + `\b`)
	return code{r.ReplaceAllString(c.avx2, "${1}"+new), r.ReplaceAllString(c.avx512, "${1}"+new)}
}

// sized is c with suffix in place of ? in the names of instructions.
func (c code) sized(suffix string) code {
	return code{strings.ReplaceAll(c.avx2, "?", suffix), strings.ReplaceAll(c.avx512, "?", suffix)}
}

// A constant fills a register with value.
type constant struct {
	register string
	value    uint64
}

// A cell is a place in a table of package reduce: a field of assembly, a type, and an operation if it has those.
type cell struct{ field, typ, op string }

// combine are the cells of an operation on several types.
func combine(op string, types ...string) (cells []cell) {
	for _, t := range types {
		cells = append(cells, cell{"combine", t, op})
	}
	return cells
}

func kernels() []kernel {
	all := bitwise()
	for _, w := range widths {
		all = slices.Concat(all, w.arithmetic(), w.logic())
	}
	return slices.Concat(all,
		floats("Float32", "PS", "Complex64"), floats("Float64", "PD", "Complex128"),
		float16.kernels(), bfloat16.kernels())
}
