package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
)

// TestFlightFileOfARound: the flights of a process that outlives a round are beside the error file of the round that it is in.
func TestFlightFileOfARound(t *testing.T) {
	var file flightFile
	for round := range 3 {
		w := env.Worker{WorldSize: 1, LocalWorldSize: 1, GroupWorldSize: 1, RoleWorldSize: 1, MasterAddr: "127.0.0.1", MasterPort: 1}
		w.ErrorFile = filepath.Join(t.TempDir(), "error.json")
		if round == 2 {
			t.Setenv("TMPDIR", t.TempDir())
			w.ErrorFile = ""
		}
		for _, kv := range w.Environ() {
			name, value, _ := strings.Cut(kv, "=")
			t.Setenv(name, value)
		}
		if round == 2 {
			_ = os.Unsetenv("TORCHELASTIC_ERROR_FILE") // which Setenv restores
		}
		for range 2 {
			path, err := file.add(map[string]int{"rank": round})
			if err != nil || round < 2 && path != filepath.Join(filepath.Dir(w.ErrorFile), flightName) {
				t.Errorf("round %d: %s, %v", round, path, err)
			}
			text, _ := os.ReadFile(path)
			if n := strings.Count(string(text), fmt.Sprintf(`{"rank":%d}`, round)); n == 0 || n != strings.Count(string(text), "\n") {
				t.Errorf("round %d: %s", round, text)
			}
		}
	}
}
