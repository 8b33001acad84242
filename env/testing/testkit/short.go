package testkit

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Nightly skips a test under -short, as scripts/check runs it for every change: it takes long, and most of what it finds other tests
// find too. scripts/check nightly runs it.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(why)
	}
}

// Without -short, a test of a grid runs all of its cases. With it, it runs enough of them to cover the grid: every type with a few
// lengths, and every length with a few types.

// UnlessShort returns all, or few under -short.
func UnlessShort[T any](all, few T) T {
	if testing.Short() {
		return few
	}
	return all
}

// Seed returns a new seed, or under -short always the same.
func Seed() uint64 { return UnlessShort(rand.Uint64(), 1) }

// WithoutRace skips a test that does something many times: the race detector makes it slow, and sees the same code in other tests.
// scripts/check runs it without the detector.
func WithoutRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("it takes long with the race detector")
	}
}

// Cannot ends a test that cannot run here. CI counts on it, so it fails there; elsewhere it is skipped.
func Cannot(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
