//go:build schedule && linux

package cma

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Deny is asked by threads of a simulated machine why they cannot read n bytes; nil: they can.
var Deny func(n int) error

// Read fills dst with p's memory at address from. A thread of a simulated machine reads that machine's memory, whatever p is.
func (p Process) Read(dst []byte, from uint64) error {
	if cpu.Running() == nil {
		return p.read(dst, from)
	}
	if Deny != nil {
		if err := Deny(len(dst)); err != nil {
			return err
		}
	}
	if len(dst) > 0 { // the address is that of a buffer that its rank keeps alive
		cpu.Copy(dst, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), len(dst)))
	}
	return nil
}
