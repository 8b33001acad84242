package testkit

import "os"

// Full reports whether a test runs all of its cases, which takes a long time. Otherwise a test of a grid runs only enough cases to cover it:
// every type with a few lengths, and every length with a few types.
func Full() bool { return os.Getenv("GORUN_TESTS") == "full" }

// Else returns all if all cases are to be run, else few.
func Else[T any](all, few T) T {
	if Full() {
		return all
	}
	return few
}
