package cma

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read fills dst, of at most a few MiB, with the memory of p at address from. The same system call reads the nonce.
func (p Process) read(dst []byte, from uint64) error {
	var nonce uint64
	local := [2]unix.Iovec{{Base: unsafe.SliceData(dst)}, {Base: (*byte)(unsafe.Pointer(&nonce))}}
	remote := [2]unix.RemoteIovec{{Base: uintptr(from), Len: len(dst)}, {Base: uintptr(p.NonceAt), Len: nonceSize}}
	local[0].SetLen(len(dst))
	local[1].SetLen(nonceSize)
	n, _, errno := syscall.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(p.PID), uintptr(unsafe.Pointer(&local)), 2, uintptr(unsafe.Pointer(&remote)), 2, 0)
	runtime.KeepAlive(dst)
	switch {
	case errno != 0:
		return os.NewSyscallError("process_vm_readv", errno)
	case n != uintptr(len(dst)+nonceSize): // it has come to memory that cannot be read
		return os.NewSyscallError("process_vm_readv", unix.EFAULT)
	case nonce != p.Nonce:
		return errOther
	}
	return nil
}

const nonceSize = 8
