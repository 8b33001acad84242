//go:build schedule

package wait

// So little that short runs come to its ends; see sizes.go.
const (
	yieldsBeforePark = 2
	firstYields      = 2
	yieldsPerLook    = 2
)
