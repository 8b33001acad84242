package comm

import (
	"reflect"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Element is any type that collectives and point-to-point calls carry: Go's integers, floats and complex numbers, and
// types built on them. All ranks of a call use the same type. int and int64 count as one type, and so do uint, uintptr
// and uint64 (on 32-bit machines the 32-bit types).
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Float16 is an IEEE 754 half-precision number. A type of your own built on it counts as uint16.
type Float16 uint16

// NewFloat16 rounds f to the nearest Float16, ties to even.
func NewFloat16(f float32) Float16 { return Float16(reduce.Float32ToFloat16(f)) }

// Float32 is the value of h, exactly.
func (h Float16) Float32() float32 { return reduce.Float16ToFloat32(uint16(h)) }

// BFloat16 is a bfloat16 number: the upper half of a float32. A type of your own built on it counts as uint16.
type BFloat16 uint16

// NewBFloat16 rounds f to the nearest BFloat16, ties to even.
func NewBFloat16(f float32) BFloat16 { return BFloat16(reduce.Float32ToBFloat16(f)) }

// Float32 is the value of b, exactly.
func (b BFloat16) Float32() float32 { return reduce.BFloat16ToFloat32(uint16(b)) }

var kindTypes = map[reflect.Kind]reduce.Type{
	reflect.Int8: reduce.Int8, reflect.Int16: reduce.Int16, reflect.Int32: reduce.Int32, reflect.Int64: reduce.Int64,
	reflect.Uint8: reduce.Uint8, reflect.Uint16: reduce.Uint16, reflect.Uint32: reduce.Uint32, reflect.Uint64: reduce.Uint64,
	reflect.Float32: reduce.Float32, reflect.Float64: reduce.Float64,
	reflect.Complex64: reduce.Complex64, reflect.Complex128: reduce.Complex128,
}

// typeOf returns the element type as which T travels.
func typeOf[T Element]() reduce.Type {
	switch any((*T)(nil)).(type) { // the usual types, fast
	case *float32:
		return reduce.Float32
	case *float64:
		return reduce.Float64
	case *int32:
		return reduce.Int32
	case *int64:
		return reduce.Int64
	case *byte:
		return reduce.Uint8
	case *Float16:
		return reduce.Float16
	case *BFloat16:
		return reduce.BFloat16
	}
	t := reflect.TypeFor[T]()
	switch t.Kind() {
	case reflect.Int:
		return [...]reduce.Type{4: reduce.Int32, 8: reduce.Int64}[t.Size()]
	case reflect.Uint, reflect.Uintptr:
		return [...]reduce.Type{4: reduce.Uint32, 8: reduce.Uint64}[t.Size()]
	}
	return kindTypes[t.Kind()]
}
