//go:build !linux

package proc

import (
	"errors"
	"syscall"
)

// There is no C library here.
func entryOf(int) (Descriptor, bool) { return Descriptor{}, false }

// PeerOf cannot say who is there.
func PeerOf(syscall.Conn) (pid, uid int, err error) { return 0, 0, errors.ErrUnsupported }
