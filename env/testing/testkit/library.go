package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// Library returns a folder with the C library in lib, and its header in include: the one that scripts/check has made
// for all tests, or else one that it makes. root is the root of the repository.
func Library(t testing.TB, root string) (prefix string) {
	t.Helper()
	if made := os.Getenv("TESTKIT_LIBRARY"); made != "" {
		return made
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		Cannot(t, "gcc: %v", err)
	}
	prefix = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), root+"/scripts/library", prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return prefix
}
