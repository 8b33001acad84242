//go:build !linux

package epoll

import (
	"errors"
	"time"
)

// A Set is a set of descriptors.
type Set struct{}

// New fails.
func New() (*Set, error) { return nil, errors.ErrUnsupported }

// Add fails.
func (*Set) Add(_, _ int, _ uint32) error { return errors.ErrUnsupported }

// Change fails.
func (*Set) Change(_, _ int, _ uint32) error { return errors.ErrUnsupported }

// Remove fails.
func (*Set) Remove(int) error { return errors.ErrUnsupported }

// Wait fails.
func (*Set) Wait() ([]int, error) { return nil, errors.ErrUnsupported }

// Ready fails.
func (*Set) Ready() ([]int, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Set) Close() error { return nil }

// A Few is a few descriptors to wait for together.
type Few struct{}

// Clear does nothing.
func (*Few) Clear() {}

// Add does nothing.
func (*Few) Add(_, _ int, _ uint32) {}

// Wait does nothing.
func (*Few) Wait(time.Duration) []int { return nil }
