package main

import (
	"fmt"
	"strings"
)

// A loop runs through vectors that are n units long: bytes, or floats where operands differ in their sizes.
type loop struct {
	name     string
	operands []operand
	factor   string // instructions that fill C with the factor, if the function has one
}

// An operand is a parameter of the function that points to a vector.
type operand struct {
	name     string
	pointer  string // the register that holds it
	typ      string // what it points to
	unit     int    // bytes of a unit
	register string // of which instructions see a piece
	load     bool
	store    bool
}

var (
	binary = &loop{name: "binary", operands: []operand{
		{name: "dst", pointer: "DI", typ: "byte", unit: 1, register: "A", store: true},
		{name: "a", pointer: "SI", typ: "byte", unit: 1, register: "A", load: true},
		{name: "b", pointer: "DX", typ: "byte", unit: 1, register: "B", load: true},
	}}
	binaryHalf = &loop{name: "binaryHalf", operands: []operand{
		{name: "dst", pointer: "DI", typ: "byte", unit: 1, register: "hA", store: true},
		{name: "a", pointer: "SI", typ: "byte", unit: 1, register: "hA", load: true},
		{name: "b", pointer: "DX", typ: "byte", unit: 1, register: "hB", load: true},
	}}
	accumulating = &loop{name: "accumulating", operands: []operand{
		{name: "acc", pointer: "DI", typ: "float32", unit: 4, register: "A", load: true, store: true},
		{name: "src", pointer: "SI", typ: "byte", unit: 2, register: "hB", load: true},
	}}
	widening = &loop{name: "widening", operands: []operand{
		{name: "dst", pointer: "DI", typ: "float32", unit: 4, register: "A", store: true},
		{name: "src", pointer: "SI", typ: "byte", unit: 2, register: "hA", load: true},
	}}
	narrowing = &loop{name: "narrowing", operands: []operand{
		{name: "dst", pointer: "DI", typ: "byte", unit: 2, register: "hA", store: true},
		{name: "src", pointer: "SI", typ: "float32", unit: 4, register: "A", load: true},
	}}
	scale32 = &loop{name: "scaling", operands: scaled, factor: "VCVTSD2SS by+16(FP), X10, X10; VBROADCASTSS X10, C"}
	scale64 = &loop{name: "scaling", operands: scaled, factor: "VBROADCASTSD by+16(FP), C"}
	scaled  = []operand{{name: "v", pointer: "DI", typ: "byte", unit: 1, register: "A", load: true, store: true}}
	loops   = []*loop{binary, binaryHalf, accumulating, widening, narrowing, scale32}
)

// signature is that of a kernel with loop l.
func (l *loop) signature() string {
	var b strings.Builder
	for i, o := range l.operands {
		switch {
		case i+1 < len(l.operands) && l.operands[i+1].typ == o.typ:
			fmt.Fprintf(&b, "%s, ", o.name)
		default:
			fmt.Fprintf(&b, "%s *%s, ", o.name, o.typ)
		}
	}
	b.WriteString("n int")
	if l.factor != "" {
		b.WriteString(", by float64")
	}
	return "(" + b.String() + ")"
}

// macro is the loop as an assembler macro: four vectors at a time, one at a time, and at a level with masks what is
// then left over.
func (l *loop) macro(at level) string {
	first := l.operands[0]
	units := at.width(first.register) / first.unit // of a vector
	m := &macro{level: at}
	m.begin(l.name+"Step", "i, OP")
	for _, o := range l.operands {
		if o.load {
			m.add("%s (i*%d)(%s), %s", at.move, at.width(o.register), o.pointer, o.register)
		}
	}
	m.add("OP")
	for _, o := range l.operands {
		if o.store {
			m.add("%s %s, (i*%d)(%s)", at.move, o.register, at.width(o.register), o.pointer)
		}
	}
	m.end()

	m.begin(l.name, "OP")
	m.add("SUBQ $%d, CX", 4*units)
	m.add("JLT few")
	m.label("four")
	for i := range 4 {
		m.add("%sStep(%d, OP)", l.name, i)
	}
	l.advance(m, 4)
	m.add("SUBQ $%d, CX", 4*units)
	m.add("JGE four")
	m.label("few")
	m.add("ADDQ $%d, CX", 3*units)
	m.add("JLT rest")
	m.label("one")
	m.add("%sStep(0, OP)", l.name)
	l.advance(m, 1)
	m.add("SUBQ $%d, CX", units)
	m.add("JGE one")
	m.label("rest")
	if at.masks {
		l.masked(m, units)
	}
	m.end()
	return m.String()
}

// advance moves the pointers by some vectors.
func (l *loop) advance(m *macro, vectors int) {
	for _, o := range l.operands {
		m.add("ADDQ $%d, %s", vectors*m.level.width(o.register), o.pointer)
	}
}

// masked does the units that are left, as many as the lowest bits of K1.
func (l *loop) masked(m *macro, units int) {
	m.add("ADDQ $%d, CX", units)
	m.add("JEQ done")
	m.add("MOVQ $-1, AX")
	m.add("BZHIQ CX, AX, AX")
	m.add("KMOVQ AX, K1")
	for _, o := range l.operands {
		if o.load {
			m.add("VMOVDQU%d.Z (%s), K1, %s", 8*o.unit, o.pointer, o.register)
		}
	}
	m.add("OP")
	for _, o := range l.operands {
		if o.store {
			m.add("VMOVDQU%d %s, K1, (%s)", 8*o.unit, o.register, o.pointer)
		}
	}
	m.label("done")
}
