// Package epoll waits for descriptors to become ready, each time once, without taking a thread.
//
// It is an epoll of its own inside that of the Go runtime: the runtime hears of the first event on a descriptor and of
// no other, however many bytes move until that is changed, or added again. On systems without epoll, New fails. A Few is for who
// has a thread to wait.
package epoll

import "errors"

// ErrUnsupported is the error of New where there is no epoll.
var ErrUnsupported = errors.ErrUnsupported
