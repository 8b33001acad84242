// Package heap has registered memory: buffers of one rank that the other ranks of its machine use in place. It works like XPMEM: a
// [Handle] of a buffer names a segment of its rank's heap and an offset, and other ranks attach that segment.
package heap
