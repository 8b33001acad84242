package testkit

import (
	"math/rand/v2"
	"os"
	"path"
	"sync"
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

// raced is set by scripts/check where it runs tests without the race detector that it runs with it, too.
const raced = "TESTKIT_RACED"

// withoutRace has the names of tests that have called WithoutRace.
var withoutRace sync.Map

// WithoutRace skips a test under the race detector: it computes a lot, or starts processes, which makes it slow there, and the detector
// sees the same code in other tests. scripts/check runs it without the detector.
func WithoutRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("it takes long with the race detector")
	}
	withoutRace.Store(t.Name(), true)
}

// Once lets scripts/check run a test once: without the race detector, if the test or the one that it is a part of has called WithoutRace,
// and with it otherwise. What tests of a package have in common calls it.
func Once(t testing.TB) {
	t.Helper()
	if Race || os.Getenv(raced) == "" {
		return
	}
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if _, ok := withoutRace.Load(name); ok {
			return
		}
	}
	t.Skip("it has run with the race detector")
}

// Cannot ends a test that cannot run here. CI counts on it, so it fails there; elsewhere it is skipped.
func Cannot(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
