//go:build !linux

package epoll

// A Set is a set of descriptors.
type Set struct{}

// New fails.
func New() (*Set, error) { return nil, ErrUnsupported }

// Add fails.
func (*Set) Add(_, _ int) error { return ErrUnsupported }

// Arm fails.
func (*Set) Arm(_, _ int, _ uint32) error { return ErrUnsupported }

// Wait fails.
func (*Set) Wait() ([]int, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Set) Close() error { return nil }

// Yield does nothing.
func Yield() {}
