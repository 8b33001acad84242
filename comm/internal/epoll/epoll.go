// Package epoll waits for descriptors to become ready, without taking a thread. Each descriptor is reported once, until it is armed again.
//
// A [Set] is an epoll descriptor, for which the Go runtime waits like for any other. So the runtime is woken by the first event on a
// descriptor of the Set, and by no other until that descriptor is added or changed again, however many bytes move. On systems without
// epoll, New fails. A [Few] is for callers that may block their thread.
package epoll
