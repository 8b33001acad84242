//go:build !linux

package filestore

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/store"
)

// A Store is a [store.Store] in a file that processes share. It needs the locks of Linux.
type Store struct{ store.Store }

// Open returns an error that wraps [errors.ErrUnsupported].
func Open(path string) (*Store, error) {
	return nil, fmt.Errorf("store: file %s: a store in a file needs Linux: %w", path, errors.ErrUnsupported)
}
