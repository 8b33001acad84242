//go:build !schedule

package wait

// Where there are more ranks than processors.
const (
	yieldsBeforePark = 100
	firstYields      = 8  // before the clock is read that says how long a wait has lasted
	yieldsPerLook    = 64 // after which a rank looks again on which processor it is
)
