package drill

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestRemoveStale: the group of a drill that has ended goes, and that of a drill that runs stays, as does what is no group of a drill.
func TestRemoveStale(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{groupPrefix + strconv.Itoa(ended.Process.Pid), groupPrefix + strconv.Itoa(os.Getpid()), groupPrefix + "x", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir)
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{groupPrefix + strconv.Itoa(os.Getpid()), groupPrefix + "x", "other"}; !slices.Equal(left, want) || err != nil {
		t.Errorf("%q are left, want %q: %v", left, want, err)
	}
}
