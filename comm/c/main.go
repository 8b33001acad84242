// Command c is package comm for other languages: a C library. It is a client of the API of package comm.
//
//	go build -buildmode=c-shared -o libgorun.so.1 ./comm/c
//
// Each function of gorun.h is in calls.c, enter.c or state.c. They refuse what C code can see is wrong, and every call in a forked
// child, where Go's runtime does not work. The rest enters Go.
//
//   - groups.go: calls on groups, of which a struct call says which; elements.go: those on elements of some type; operands.go: their
//     buffers; ops.go: the caller's reductions
//   - lifetime.go: the world, groups, work, memory
//   - state.go: the state of package elastic
//   - stores.go: stores; customstore.go: those whose functions the caller has
//   - errors.go: how an error of Go gets to the thread that has called
//   - handles.go: what C has instead of pointers to Go's memory
package main

/*
#cgo CFLAGS: -std=c11 -Wall -Wextra
#cgo LDFLAGS: -pthread
#include "call.h"
*/
import "C"

func main() {} // a library has none, and -buildmode=c-shared wants one
