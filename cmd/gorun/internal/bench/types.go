package bench

import (
	"context"
	"slices"

	"github.com/gorun/gorun/comm"
)

// A dataType is a type of elements. Its name is that of nccl-tests, or else Go's.
type dataType struct {
	name      string
	size      int64
	unordered bool // there is no least or greatest element
	caller    newCaller
}

// A newCaller makes the caller of an experiment, with buffers for count elements, which free releases.
type newCaller func(ctx context.Context, g *comm.Group, e experiment, count int) (call caller, free func() error, err error)

// A caller makes a call with count elements, or with blocks of count elements, out of place or in place.
type caller func(count int, inPlace bool) *call

var dataTypes = []dataType{
	{name: "int8", size: 1, caller: callerOf(as[int8])},
	{name: "uint8", size: 1, caller: callerOf(as[uint8])},
	{name: "int16", size: 2, caller: callerOf(as[int16])},
	{name: "uint16", size: 2, caller: callerOf(as[uint16])},
	{name: "int32", size: 4, caller: callerOf(as[int32])},
	{name: "uint32", size: 4, caller: callerOf(as[uint32])},
	{name: "int64", size: 8, caller: callerOf(as[int64])},
	{name: "uint64", size: 8, caller: callerOf(as[uint64])},
	{name: "half", size: 2, caller: callerOf(func(n int) comm.Float16 { return comm.NewFloat16(float32(n)) })},
	{name: "float", size: 4, caller: callerOf(as[float32])},
	{name: "double", size: 8, caller: callerOf(as[float64])},
	{name: "bfloat16", size: 2, caller: callerOf(func(n int) comm.BFloat16 { return comm.NewBFloat16(float32(n)) })},
	{name: "complex64", size: 8, unordered: true, caller: callerOf(func(n int) complex64 { return complex(float32(n), 0) })},
	{name: "complex128", size: 16, unordered: true, caller: callerOf(func(n int) complex128 { return complex(float64(n), 0) })},
}

// noType is the type of operations that move no data.
var noType = dataType{name: "none", size: 1, caller: callerOf(as[int8])}

// Types are the names of the types.
func Types() (names []string) {
	for _, t := range dataTypes {
		names = append(names, t.name)
	}
	return names
}

// synonyms are Go's names of types that have other names in nccl-tests.
var synonyms = map[string]string{"float16": "half", "float32": "float", "float64": "double"}

// TypeNamed returns the name in Types of a type, which may be written with Go's name. All counts as a type.
func TypeNamed(name string) (string, bool) {
	if other, ok := synonyms[name]; ok {
		name = other
	}
	return name, name == All || slices.Contains(Types(), name)
}

// as converts an int.
func as[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64](n int) T {
	return T(n)
}
