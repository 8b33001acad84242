// Package reduce combines vectors element by element: one table of (element type, operation).
//
// Kernels work on bytes, so that plans and transports need no type parameters. Both vectors hold the same number of
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

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// An Op is an operation that combines two elements. The numbers travel between ranks.
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
	numOps = iota + 1
)

var opNames = [numOps]string{"none", "Sum", "Prod", "Min", "Max", "BitAnd", "BitOr", "BitXor"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// A Kernel sets every element of dst to dst op src.
type Kernel func(dst, src []byte)

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

// For returns the kernel of an operation on a type, or nil where it has no meaning: bitwise operations on anything
// but integers, Min and Max on complex numbers.
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
	return k
}

func integers[T integer]() [numOps]Kernel {
	k := floats[T]()
	k[And] = each(func(a, b T) T { return a & b })
	k[Or] = each(func(a, b T) T { return a | b })
	k[Xor] = each(func(a, b T) T { return a ^ b })
	return k
}

// sum is the kernel that everybody uses, written out because a call per element costs several times the addition.
func sum[T ordered](dst, src []byte) {
	d, s := View[T](dst), View[T](src)
	s = s[:len(d)]
	for i := range d {
		d[i] += s[i]
	}
}

func each[T any](f func(a, b T) T) Kernel {
	return func(dst, src []byte) {
		d, s := View[T](dst), View[T](src)
		s = s[:len(d)]
		for i := range d {
			d[i] = f(d[i], s[i])
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
