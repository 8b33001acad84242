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
	"github.com/gorun/gorun/env/auth"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		more string // of the error file; empty: there is none
	}{
		{nil, 0, ""},
		{errors.New("disk full"), 1, ""},
		{&PeerError{Rank: 1, Finder: 2, Err: errors.New("died")}, 1, `"failed_peer":{"rank":1,"finder":2}`},
		{fmt.Errorf("step 7: %w", &AbortError{Rank: 1, Err: errors.New("disk full")}), 1, `"failed_peer":{"rank":1,"finder":1}`},
		{&AbortError{Rank: 0, Err: errors.New("disk full"), own: true}, 1, ""},
		{&AbortError{Rank: 1, Err: errors.New("it found this rank at fault"), selfAtFault: true}, 1, ""},
		{fmt.Errorf("step 7: %w", &PeerError{Rank: 1, Err: ErrTimeout, Addr: "10.0.0.2:4711"}), 1, `"failed_peer":{"rank":1,"finder":0}`},
		{fmt.Errorf("step 7: %w", &PeerError{Rank: 1, Err: ErrTimeout, Addr: "10.0.0.2:4711"}), 1, `"unreachable":[{"rank":1,"address":"10.0.0.2:4711"}]`},
		{&MissingRanksError{Missing: []int{1}, Size: 2}, 2, ""},
		{&ArgumentError{Op: "Send", Err: errors.New("no such rank")}, 2, `"restart":false`},
		{fmt.Errorf("step 7: %w", &MismatchError{Op: "AllReduce"}), 2, `"restart":false`},
		{&DeadlockError{Op: "Recv", Err: ErrTimeout}, 2, `"restart":false`},
		{fmt.Errorf("store at 10.0.0.2:4711: %w", auth.ErrNoToken), 2, `"restart":false`},
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
		if c.more == "" {
			if err == nil {
				t.Errorf("%v: the error file says %s, want none", c.err, text)
			}
			continue
		}
		var document struct {
			Message struct{ Message string }
		}
		if err := json.Unmarshal(text, &document); err != nil || document.Message.Message != c.err.Error() || !strings.Contains(string(text), c.more) || strings.Count(string(text), `"restart":`)+strings.Count(string(text), `"failed_peer":`) != 1 {
			t.Errorf("%v: the error file says %q, %v, want %s in it", c.err, text, err, c.more)
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
