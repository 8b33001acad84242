//go:build race

package testkit

// Race says whether the race detector is on.
const Race = true
