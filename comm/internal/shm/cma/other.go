//go:build !linux

package cma

import "errors"

// Read fails: there is no such system call here.
func (Process) Read([]byte, uint64) error { return errors.ErrUnsupported }
