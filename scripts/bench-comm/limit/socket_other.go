//go:build !linux

package limit

import (
	"runtime"

	"golang.org/x/sys/unix"
)

func tune(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }

func yield() { runtime.Gosched() }
