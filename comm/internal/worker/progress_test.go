package worker

import (
	"os"
	"path/filepath"
	"testing"
)

// TestProgressFromTheBeginning: a rank that stops as soon as it has called Init or Rejoin has reported progress, so that it is watched.
func TestProgressFromTheBeginning(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	reportWaiting(file)()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
