//go:build !linux

package cma

import "errors"

// Read fails: there is no such system call here.
func Read(int, []byte, uint64) error { return errors.ErrUnsupported }

// Allow does nothing.
func Allow() {}
