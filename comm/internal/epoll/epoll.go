// Package epoll waits for descriptors to become ready, without taking a thread. Each descriptor is reported once, until it is armed again.
//
// A [Set] is an epoll of its own inside that of the Go runtime. So the runtime hears of the first event on a descriptor and of no other,
// however many bytes move until the descriptor is added or changed again. On systems without epoll, New fails. A [Few] is for callers
// that may block their thread.
package epoll
