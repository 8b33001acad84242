//go:build !linux

package segment

import "errors"

// A Segment is memory that processes share.
type Segment struct{}

// Create fails: there is no shared memory here.
func Create(int) (*Segment, error) { return nil, errors.ErrUnsupported }

// Open fails.
func Open(_, _ int) (*Segment, error) { return nil, errors.ErrUnsupported }

// FD returns no descriptor.
func (*Segment) FD() int { return -1 }

// Bytes returns nothing.
func (*Segment) Bytes() []byte { return nil }

// CloseFD does nothing.
func (*Segment) CloseFD() {}

// Close does nothing.
func (*Segment) Close() error { return nil }

// Replace fails.
func (*Segment) Replace(*Segment) error { return errors.ErrUnsupported }

// Punch fails.
func (*Segment) Punch(_, _ int) error { return errors.ErrUnsupported }

// Populate does nothing.
func Populate([]byte) error { return nil }

// PopulateLarge does nothing.
func PopulateLarge([]byte) {}

// AdviseLarge does nothing.
func AdviseLarge([]byte) {}
