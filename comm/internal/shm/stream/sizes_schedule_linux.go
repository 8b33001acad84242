//go:build schedule

package stream

// So little that short runs come to its ends; see sizes_linux.go.
const (
	LongestRecord = 160
	pollsPerCheck = 2
)
