// Package heap is registered memory: buffers of one rank that the others of its machine use in place. It goes about it as XPMEM
// does. A rank has a [Handle] of a buffer, which names a segment of its heap and an offset, and other ranks attach that segment.
package heap
