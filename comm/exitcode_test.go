package comm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    int
		recover bool // another attempt may do better
	}{
		{nil, 0, true},
		{errors.New("disk full"), 1, true},
		{&PeerError{Rank: 1, Err: errors.New("died")}, 1, true},
		{&MissingRanksError{Missing: []int{1}, Size: 2}, 2, true},
		{&ArgumentError{Op: "Send", Err: errors.New("no such rank")}, 2, false},
		{fmt.Errorf("step 7: %w", &MismatchError{Op: "AllReduce"}), 2, false},
		{&DeadlockError{Op: "Recv", Err: ErrTimeout}, 2, false},
	} {
		file := filepath.Join(t.TempDir(), "error.json")
		for _, kv := range (env.Worker{WorldSize: 1, MasterAddr: "localhost", MasterPort: 1, LocalWorldSize: 1, ErrorFile: file}).Environ() {
			name, value, _ := strings.Cut(kv, "=")
			t.Setenv(name, value)
		}
		if got := ExitCode(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
		text, err := os.ReadFile(file)
		if c.recover {
			if err == nil {
				t.Errorf("%v: the error file says %s, want none", c.err, text)
			}
			continue
		}
		var document struct {
			Message struct{ Message string }
			Restart *bool
		}
		if err := json.Unmarshal(text, &document); err != nil || document.Message.Message != c.err.Error() || document.Restart == nil || *document.Restart {
			t.Errorf("%v: the error file says %q, %v", c.err, text, err)
		}

		if err := os.WriteFile(file, []byte("the program's own"), 0o600); err != nil {
			t.Fatal(err)
		}
		ExitCode(c.err)
		if text, _ := os.ReadFile(file); string(text) != "the program's own" {
			t.Errorf("%v: the program's error file was replaced by %s", c.err, text)
		}
	}
}
