//go:build !schedule

package stream

const (
	// LongestRecord is the most bytes of a record. Longer messages are cut into several, so that the reader reads one while the writer
	// writes the next. Go copies records this short through the caches.
	LongestRecord = 16 << 10
	pollsPerCheck = 1024 // unsuccessful polls after which it is worth checking the socket
)
