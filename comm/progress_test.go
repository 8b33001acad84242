package comm_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/progress"
)

// TestProgressFile: operations touch the file, and nothing else does; the agent gets stacks and flight recorders; nothing is left of it.
func TestProgressFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "0")
	t.Setenv("GORUN_PROGRESS_FILE", file)
	long := time.Unix(1, 0)
	touched := func() bool {
		info, err := os.Stat(file)
		return err == nil && !info.ModTime().Equal(long)
	}
	await := func(what string) {
		t.Helper()
		for limit := time.Now().Add(20 * time.Second); !touched(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s does not touch the file", what)
			}
		}
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	other, err := comm.Init(t.Context(), comm.WithRank(0, 1), comm.WithStore(comm.NewMemStore())) // which gorun does not know
	if err == nil {
		err = other.Close()
	}
	if _, statErr := os.Stat(file); err != nil || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("%v; touched for another world: %v", err, statErr)
	}
	for name, value := range map[string]string{"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "GORUN_TOKEN": "secret"} {
		t.Setenv(name, value)
	}
	g, err := comm.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await("Init")
	for range 100 {
		if err := comm.Barrier(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	await("a collective")
	for tries := 0; ; tries++ { // a touch may be under way
		time.Sleep(time.Second)
		if !touched() {
			break
		}
		if await("?"); tries == 20 {
			t.Fatal("the file is touched, and nothing goes on")
		}
	}
	s, err := progress.Ask(t.Context(), file, true, nil)
	if err != nil || s.Pid != os.Getpid() || s.Operation || !strings.Contains(s.Stacks, "TestProgressFile") || len(s.Flights) != 1 ||
		s.Collectives == nil || s.Collectives.PerSecond <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(progress.Socket(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
