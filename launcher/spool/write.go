package spool

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// write writes all of b. It waits even if another process that shares the open file has made it non-blocking.
func write(to io.Writer, b []byte) (n int, err error) {
	for {
		written, err := to.Write(b[n:])
		n += written
		if !errors.Is(err, syscall.EAGAIN) {
			return n, err
		}
		if err := awaitWritable(to); err != nil {
			return n, err
		}
	}
}

// awaitWritable waits until an open file accepts more. If it never will, the next write returns the error.
func awaitWritable(w io.Writer) error {
	file, ok := w.(syscall.Conn)
	if !ok {
		return syscall.EAGAIN
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var pollErr error
	err = raw.Control(func(fd uintptr) {
		_, pollErr = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
	})
	if errors.Is(pollErr, unix.EINTR) {
		pollErr = nil
	}
	return errors.Join(err, pollErr)
}
