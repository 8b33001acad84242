package cma

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostAtOnce is the most bytes of a system call. The Go runtime does not know that a thread is in one, so none may last.
const mostAtOnce = 256 << 10

func read(pid int, dst []byte, from uint64) error {
	for len(dst) > 0 {
		n, errno := readOnce(pid, dst[:min(len(dst), mostAtOnce)], from)
		if n == 0 && errno == 0 {
			errno = unix.EFAULT // so that a kernel that reads nothing cannot keep this loop going
		}
		if errno != 0 {
			return os.NewSyscallError("process_vm_readv", errno)
		}
		dst, from = dst[n:], from+uint64(n)
	}
	return nil
}

// readOnce reads up to the first page that cannot be read.
func readOnce(pid int, dst []byte, from uint64) (n uintptr, errno syscall.Errno) {
	local := unix.Iovec{Base: unsafe.SliceData(dst)}
	local.SetLen(len(dst))
	remote := unix.RemoteIovec{Base: uintptr(from), Len: len(dst)}
	n, _, errno = syscall.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
		uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	runtime.KeepAlive(dst)
	return n, errno
}
