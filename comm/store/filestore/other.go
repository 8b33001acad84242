//go:build !linux

package comm

import (
	"errors"
	"fmt"
)

// A FileStore is a [Store] in a file that processes share. It needs the locks of Linux.
type FileStore struct{ MemStore }

// NewFileStore returns an error that wraps [errors.ErrUnsupported].
func NewFileStore(path string) (*FileStore, error) {
	return nil, fmt.Errorf("store: file %s: a store in a file needs Linux: %w", path, errors.ErrUnsupported)
}
