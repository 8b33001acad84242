//go:build !schedule

package wait

// These hold if there are more ranks than processors.
const (
	yieldsBeforePark = 100
	firstYields      = 8  // before the wait is timed
	yieldsPerLook    = 64 // after which a rank finds out again on which processor it is
)
