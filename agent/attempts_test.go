package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/launcher"
)

// files returns the names of all files below a directory.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && !info.IsDir() {
				list = append(list, name[len(dir)+1:])
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestPrepareAttempt: a new gang of an attempt finds directories, and nothing that it has not written. Among logs, nothing is lost;
// elsewhere, nothing piles up.
func TestPrepareAttempt(t *testing.T) {
	inLogs, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "not", "yet")
	for _, c := range []Config{{Spec: launcher.Spec{Logs: launcher.LogSpec{Dir: inLogs}}}, {ErrorDir: elsewhere}} {
		for gang := range 3 {
			if err := prepareAttempt(c, 7, 2); err != nil {
				t.Fatal(err)
			}
			for local := range 2 {
				dir := filepath.Dir(errorFile(c, 7, local))
				for _, name := range []string{"error.json", "flight.json"} {
					if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
						t.Errorf("gang %d finds %s: %v", gang, name, err)
					}
					write(t, filepath.Join(dir, name), fmt.Sprint(gang))
				}
			}
		}
	}
	for local := range 2 {
		for _, kind := range []string{"error", "flight"} {
			for name, want := range map[string]string{kind + ".1.json": "0", kind + ".2.json": "1", kind + ".json": "2"} {
				if got := read(t, filepath.Join(inLogs, "attempt_7", fmt.Sprint(local), name)); got != want {
					t.Errorf("%s holds %q, want %q", name, got, want)
				}
			}
		}
	}
	want := []string{"attempt_7/0/error.json", "attempt_7/0/flight.json", "attempt_7/1/error.json", "attempt_7/1/flight.json"}
	if got := files(t, elsewhere); !slices.Equal(got, want) {
		t.Errorf("outside of the logs there are %q, want %q", got, want)
	}
	if err := prepareAttempt(Config{}, 0, 2); err != nil {
		t.Errorf("without directories: %v", err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	write(t, blocked, "")
	if err := prepareAttempt(Config{ErrorDir: blocked}, 0, 2); err == nil {
		t.Error("a file in the place of the directory is no error")
	}
}

// TestManyAttempts: however many attempts there are, only the last two have files, except for what workers were doing when one hung. Logs
// are the user's.
func TestManyAttempts(t *testing.T) {
	const attempts = 100
	for _, where := range []string{"a directory for errors", "logs"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			var scripts [][]script
			for range attempts {
				scripts = append(scripts, []script{{after: time.Second, code: 3, says: `{"message":"boom"}`}})
			}
			s := newTestbed(t, attempts-1, scripts...)
			s.config.ErrorDir = dir
			if where == "logs" {
				s.config.ErrorDir, s.config.Spec.Logs.Dir = t.TempDir(), dir
			}
			write(t, filepath.Join(dir, "attempt_3", "0", hang.StacksFile), "stacks")
			write(t, filepath.Join(dir, "attempt_3", hang.FlightsFile), "flights")
			write(t, filepath.Join(dir, "progress"), "not of an attempt")
			if err := Run(t.Context(), s.config); err == nil {
				t.Error("the job succeeds")
			}
			got, want := files(t, dir), []string{
				"attempt_3/0/stacks.txt", "attempt_3/flights.txt", "attempt_98/0/error.json", "attempt_99/0/error.json", "progress",
			}
			if where == "logs" && len(got) != attempts+3 || where != "logs" && !slices.Equal(got, want) {
				t.Errorf("%s has %q", where, got)
			}
			if dirs, err := os.ReadDir(dir); err != nil || where != "logs" && len(dirs) != 4 {
				t.Errorf("%s has %d entries, %v", where, len(dirs), err)
			}
		})
	}
}
