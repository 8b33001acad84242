// Package reduce combines vectors element by element: one table of (element type, operation).
//
// Kernels work on bytes, so that plans and transports need no type parameters. All vectors have the same number of
// elements, in the machine's byte order. They may begin at any address on processors that can load from there (such as
// amd64 and arm64); on others they are aligned for their type. Integers wrap. Min and Max follow Go's builtins: a NaN
// wins, and -0 is less than +0. Float16 and BFloat16 are computed in float32 and rounded to nearest even.
//
// There is a table in portable Go, and for amd64 there are two in assembly, AVX2 and AVX-512. All give the same
// results, except for the bits of a NaN. The best one that the processor has is used, or the one that GORUN_KERNELS
// names: portable, avx2 or avx512.
//
// The assembly comes from a description in folder gen.
package reduce

//go:generate go run ./gen

import (
	"fmt"
	"unsafe"
)

// A Type is an element type. The numbers travel between ranks.
type Type uint8

// The element types. Go's int, uint and uintptr are Int64 and Uint64 (or their 32-bit forms). A new type also needs a
// row in types, its functions in portable, and, for users, its place in Element and typeOf of package comm.
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

var types = [numTypes]struct {
	name string
	size int
}{
	{"untyped", 1}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"uint8", 1}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8},
	{"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16}, {"Float16", 2}, {"BFloat16", 2},
}

// Size returns the bytes of an element. For a number that is no type it is 1.
func (t Type) Size() int {
	if int(t) < numTypes {
		return types[t].size
	}
	return 1
}

func (t Type) String() string {
	if int(t) < numTypes {
		return types[t].name
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// An Op is an operation that combines two values: elements, or for MinLoc and MaxLoc pairs of them. The numbers travel
// between ranks.
type Op uint8

// The operations. A new one also needs its name in opNames, its kernels in portable, and, for users, a constant in
// comm/op.go.
const (
	Sum Op = iota + 1
	Prod
	Min
	Max
	And
	Or
	Xor
	LogicalAnd // 0 is false; the result is 0 or 1
	LogicalOr
	LogicalXor
	MinLoc // values are pairs of a number and its location
	MaxLoc
	numOps = iota + 1

	LastOp = Op(numOps - 1)
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

// A Kernel sets every value of dst to a op b. dst is a, b or a third vector. Otherwise the vectors do not overlap. A
// Kernel does not change a and b, with one exception: it may change a if dst is b and the operation is the caller's
// own.
type Kernel func(dst, a, b []byte)

// For returns the kernel of an operation on a type, or nil if there is none: bitwise and logical operations are only
// for integers, and Min, Max, MinLoc and MaxLoc are not for complex numbers.
func For(t Type, o Op) Kernel {
	if int(t) >= numTypes || int(o) >= numOps {
		return nil
	}
	return current.combine[t][o]
}

// View returns b as a slice of T. b is aligned for T and holds whole elements.
func View[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var e T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/unsafe.Sizeof(e))
}

// Bytes returns s as bytes.
func Bytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(s[0]))
}
