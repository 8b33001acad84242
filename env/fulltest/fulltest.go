// Package fulltest lets tests have more cases than are run at every change.
//
// A test that goes through a grid runs cases that cover it: every type at few lengths, every length with few types. With
// GORUN_TESTS=full in the environment it runs all of them, which takes long.
package fulltest

import "os"

// Full is whether all cases are to be run.
func Full() bool { return os.Getenv("GORUN_TESTS") == "full" }

// Else is all if all cases are to be run, else few.
func Else[T any](all, few T) T {
	if Full() {
		return all
	}
	return few
}
