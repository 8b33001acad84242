//go:build !schedule

package stream

const (
	// LongestRecord is the most bytes of a record. The writer cuts longer messages, so that the reader is at the first part while the
	// writer is at the next. Go copies pieces this short through the cache.
	LongestRecord = 16 << 10
	pollsPerCheck = 1024 // polls in vain, after which a look at the socket is worth its cost
)
