// Package fulltest lets a test have more cases than it runs for every change.
//
// A test of a grid usually runs only enough cases to cover it: every type with a few lengths, and every length with a few
// types. With GORUN_TESTS=full in the environment, it runs all cases, which takes a long time.
package fulltest

import "os"

// Full reports whether to run all cases.
func Full() bool { return os.Getenv("GORUN_TESTS") == "full" }

// Else returns all if all cases are to be run, else few.
func Else[T any](all, few T) T {
	if Full() {
		return all
	}
	return few
}
