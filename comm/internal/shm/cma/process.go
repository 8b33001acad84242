package cma

import (
	"errors"
	"math/rand/v2"
	"os"
	"unsafe"
)

// A Process is what others need to read the memory of a process. A PID alone does not name one: PIDs differ between PID namespaces, and are
// used again. So there is a random number in the process's memory, which every read compares.
type Process struct {
	PID     uint64
	NonceAt uint64 // the number's address
	Nonce   uint64
}

// errOther says that the PID is that of another process.
var errOther = errors.New("another process has this PID")

// Self returns this process. It sets nonce, which the caller keeps where it is.
func Self(nonce *uint64) Process {
	*nonce = rand.Uint64()
	return Process{PID: uint64(os.Getpid()), NonceAt: uint64(uintptr(unsafe.Pointer(nonce))), Nonce: *nonce}
}
