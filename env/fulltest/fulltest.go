// Package fulltest lets a test have more cases than it runs at every change.
//
// A test of a grid usually runs only as many cases as cover it: every type with few lengths, every length with few types. With
// GORUN_TESTS=full in the environment it runs all of them, which takes long.
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
