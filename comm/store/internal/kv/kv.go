// Package kv keeps the keys and values of a store in memory. [State] is what the calls of a store mean, without locks or
// I/O: the server of package tcpstore owns one. [Shared] adds a lock and calls that wait: package memstore is one, and
// package filestore keeps what its file says in one.
package kv

import (
	"context"
	"errors"
)

// Copy returns a copy of value that is not nil, because nil stands for no value.
func Copy(value []byte) []byte { return append([]byte{}, value...) }

// Ended reports whether err means that ctx has ended.
func Ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}
