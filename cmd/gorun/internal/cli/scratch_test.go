package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAbandoned: what is left of a job whose processes were all killed goes when the next one ends, and nothing else does.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	make := func(name string) *scratch {
		s, err := newScratch(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "error"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return s
	}
	running, failed, killed, last := make("running"), make("failed"), make("killed"), make("last")
	mine := filepath.Join(dir, scratchPrefix+"mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := failed.close(true); err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	if err := last.close(false); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{running.dir: true, failed.dir: true, killed.dir: false, last.dir: false, mine: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := running.close(false); err != nil {
		t.Error(err)
	}
}
