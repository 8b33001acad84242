// Package reduce combines vectors element by element: one table of (element type, operation).
//
// Kernels work on bytes, so that plans and transports need no type parameters. All vectors hold the same number of
// elements in the machine's own byte order, aligned for their type. Integers wrap. Min and Max follow Go's builtins:
// a NaN wins, and -0 is less than +0. Float16 and BFloat16 are computed in float32 and rounded to nearest even.
package reduce

import (
	"fmt"
	"unsafe"
)

// A Type is an element type. The numbers travel between ranks.
type Type uint8

// The element types. Go's int, uint and uintptr are Int64 and Uint64 (or their 32-bit forms).
const (
	Int8 Type = iota + 1
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	Float16
	BFloat16
	numTypes = iota + 1
)

var typeNames = [numTypes]string{
	"untyped", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
	"float32", "float64", "complex64", "complex128", "Float16", "BFloat16",
}

var typeSizes = [numTypes]int{
	1, 1, 2, 4, 8, 1, 2, 4, 8,
	4, 8, 8, 16, 2, 2,
}

// Size is the bytes that an element takes; of a number that means no type it is 1.
func (t Type) Size() int {
	if int(t) < len(typeSizes) {
		return typeSizes[t]
	}
	return 1
}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// An Op is an operation that combines two values: elements, or for MinLoc and MaxLoc pairs of them. The numbers travel
// between ranks.
type Op uint8

// The operations.
const (
	Sum Op = iota + 1
	Prod
	Min
	Max
	And
	Or
	Xor
	LogicalAnd // not 0 is true; the result is 0 or 1
	LogicalOr
	LogicalXor
	MinLoc // values are pairs of a number and its place
	MaxLoc
	numOps = iota + 1
)

var opNames = [numOps]string{
	"none", "Sum", "Prod", "Min", "Max", "BitAnd", "BitOr", "BitXor",
	"LogicalAnd", "LogicalOr", "LogicalXor", "MinLoc", "MaxLoc",
}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// A Kernel sets every value of dst to a op b. dst is a or b; the other one may be overwritten.
type Kernel func(dst, a, b []byte)

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type ordered interface {
	integer | ~float32 | ~float64
}

type number interface {
	ordered | ~complex64 | ~complex128
}

var table = [numTypes][numOps]Kernel{
	Int8:       integers[int8](),
	Int16:      integers[int16](),
	Int32:      integers[int32](),
	Int64:      integers[int64](),
	Uint8:      integers[uint8](),
	Uint16:     integers[uint16](),
	Uint32:     integers[uint32](),
	Uint64:     integers[uint64](),
	Float32:    floats[float32](),
	Float64:    floats[float64](),
	Complex64:  numbers[complex64](),
	Complex128: numbers[complex128](),
	Float16:    halves[half](),
	BFloat16:   halves[brain](),
}

// For returns the kernel of an operation on a type, or nil where it has no meaning: bitwise and logical operations on
// anything but integers, Min, Max, MinLoc and MaxLoc on complex numbers.
func For(t Type, o Op) Kernel {
	if int(t) >= numTypes || int(o) >= numOps {
		return nil
	}
	return table[t][o]
}

func numbers[T number]() [numOps]Kernel {
	return [numOps]Kernel{
		Sum:  each(func(a, b T) T { return a + b }),
		Prod: each(func(a, b T) T { return a * b }),
	}
}

func floats[T ordered]() [numOps]Kernel {
	k := numbers[T]()
	k[Sum] = sum[T]
	k[Min] = each(func(a, b T) T { return min(a, b) })
	k[Max] = each(func(a, b T) T { return max(a, b) })
	k[MinLoc] = pairs(lowest[T], lowest[T])
	k[MaxLoc] = pairs(highest[T], lowest[T])
	return k
}

func integers[T integer]() [numOps]Kernel {
	k := floats[T]()
	k[And] = each(func(a, b T) T { return a & b })
	k[Or] = each(func(a, b T) T { return a | b })
	k[Xor] = each(func(a, b T) T { return a ^ b })
	k[LogicalAnd] = each(func(a, b T) T { return truth[T](a != 0 && b != 0) })
	k[LogicalOr] = each(func(a, b T) T { return truth[T](a != 0 || b != 0) })
	k[LogicalXor] = each(func(a, b T) T { return truth[T]((a != 0) != (b != 0)) })
	return k
}

func truth[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

// sum is the kernel that everybody uses, written out because a call per element costs several times the addition.
func sum[T ordered](dst, a, b []byte) {
	d, x, y := View[T](dst), View[T](a), View[T](b)
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func each[T any](f func(a, b T) T) Kernel {
	return func(dst, a, b []byte) {
		d, x, y := View[T](dst), View[T](a), View[T](b)
		x, y = x[:len(d)], y[:len(d)]
		for i := range d {
			d[i] = f(x[i], y[i])
		}
	}
}

// View is b as a slice of T. b is aligned for T and holds whole elements.
func View[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var e T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/unsafe.Sizeof(e))
}

// Bytes is s as bytes.
func Bytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(s[0]))
}
