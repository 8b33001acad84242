package testkit

import (
	"os"
	"syscall"
	"testing"
)

// Pipe returns the two ends of a pipe. Both are in blocking mode, as stdout usually is. They are closed when the test ends.
func Pipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	var fds [2]int
	keepFromChildren(t, func() ([]int, error) { return fds[:], syscall.Pipe(fds[:]) })
	reader, writer = os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
	return reader, writer
}

// HungUp returns one end of a connection whose other end has been closed. It is closed when the test ends.
func HungUp(t *testing.T) *os.File {
	t.Helper()
	var pair []int
	keepFromChildren(t, func() (fds []int, err error) {
		two, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		pair = two[:]
		return pair, err
	})
	_ = syscall.Close(pair[0])
	f := os.NewFile(uintptr(pair[1]), "connection")
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Socket returns a TCP socket for IPv4. The caller closes it.
func Socket() (fd int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(fd)
	}
	return fd, err
}

// keepFromChildren opens descriptors that programs started meanwhile do not inherit.
func keepFromChildren(t *testing.T, open func() ([]int, error)) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
}
