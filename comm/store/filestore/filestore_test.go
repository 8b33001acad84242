//go:build linux

package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/filestore"
	"github.com/gorun/gorun/comm/store/storetest"
	"github.com/gorun/gorun/env/configtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(configtest.With(m)) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		path := filepath.Join(t.TempDir(), "store")
		return func() store.Store {
			return open(t, path)
		}
	})
}

func open(t *testing.T, path string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

const (
	childVariable = "GORUN_TEST_FILE_STORE_CHILD" // path of the store, then what to do
	childAdds     = 200
)

// pattern returns a value that differs from every part of it.
func pattern(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 0xa5}, 50<<10) }

// TestChild is not a test. It is what the child processes of the tests below do.
func TestChild(t *testing.T) {
	path, what, ok := strings.Cut(os.Getenv(childVariable), "|")
	if !ok {
		t.Skip("runs as a child of other tests only")
	}
	s := open(t, path)
	if what == "count" {
		for range childAdds {
			if _, err := s.Add(t.Context(), "count", 1); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for i := 0; ; i++ { // until it is killed
		if err := s.Set(t.Context(), fmt.Sprint(what, "/", i), pattern(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(t.Context(), what, 1); err != nil {
			t.Fatal(err)
		}
	}
}

func child(t *testing.T, path, what string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestChild$")
	c.Env = append(os.Environ(), childVariable+"="+path+"|"+what)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

func TestProcessesAddUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := open(t, path)
	var children [3]*exec.Cmd
	for i := range children {
		children[i] = child(t, path, "count")
	}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Add(t.Context(), "count", 0); err != nil || n != int64(len(children)*childAdds) {
		t.Errorf("%d processes have each added %d: %d, %v", len(children), childAdds, n, err)
	}
}

// A writer is killed again and again, mostly in the middle of a write.
func TestSurvivesKilledWriters(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "store")
	s, reader := open(t, path), open(t, path)
	for round := range 12 {
		name := fmt.Sprint("round", round)
		writer := child(t, path, name)
		if err := reader.Wait(ctx, fmt.Sprint(name, "/", round)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait()

		done, err := s.Add(ctx, name, 0)
		if err != nil {
			t.Fatalf("Add after a writer was killed: %v", err)
		}
		for i := range int(done) {
			if got, err := reader.Get(ctx, fmt.Sprint(name, "/", i)); err != nil || !bytes.Equal(got, pattern(i)) {
				t.Fatalf("of %d values that were written, number %d is %d bytes, %v", done, i, len(got), err)
			}
		}
		torn := fmt.Sprint(name, "/", done) // was set wholly, or not at all
		if got, err := s.CompareAndSwap(ctx, torn, nil, []byte("free")); err != nil || string(got) != "free" && !bytes.Equal(got, pattern(int(done))) {
			t.Fatalf("the value that was perhaps being written is %d bytes, %v", len(got), err)
		}
		if err := s.Set(ctx, "after", []byte(name)); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.Get(ctx, "after"); err != nil || string(got) != name {
			t.Fatalf("what was set after the kill reads %q, %v", got, err)
		}
	}
}

func TestLivesAsLongAsItIsOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	first, second := open(t, path), open(t, path)
	if err := first.Set(t.Context(), "key", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := second.Get(t.Context(), "key"); err != nil || string(got) != "v" {
		t.Errorf("after the first has closed, the second gets %q, %v", got, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last has closed, and the file: %v", err)
	}
}

func TestDoesNotMixRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	killed := child(t, path, "earlier")
	waitForFile(t, path, 1<<20)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	s := open(t, path)
	for _, key := range []string{"earlier", "earlier/0"} {
		if existed, err := s.Delete(t.Context(), key); err != nil || existed {
			t.Errorf("%s of the killed run: %v, %v; want it gone", key, existed, err)
		}
	}
}

// waitForFile waits until the file at path has size bytes, without opening the store.
func waitForFile(t *testing.T, path string, size int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if st, err := os.Stat(path); err == nil && st.Size() >= size {
			return
		}
	}
	t.Fatalf("%s did not grow to %d bytes", path, size)
}

func TestLeavesWhatIsNotAStore(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "thesis.txt")
	const text = "gorun is not mentioned here"
	if err := os.WriteFile(foreign, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.Open(foreign); err == nil || !strings.Contains(err.Error(), foreign+", offset 0: this is not a store") {
		t.Errorf("Open on a text: %v", err)
	}
	if got, err := os.ReadFile(foreign); err != nil || string(got) != text {
		t.Errorf("the text is now %q, %v", got, err)
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.WriteFile(open, nil, 0o600), os.Chmod(open, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.Open(open); err == nil || !strings.Contains(err.Error(), "can be written by everybody") {
		t.Errorf("Open on a file that everybody can write: %v", err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "no", "such", "directory"), "/dev/null"} {
		if _, err := filestore.Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Open(%s): %v; want an error that names it", path, err)
		}
	}
}

// Whatever happens to the file, a call that waits returns an error that says so.
func TestSaysWhatHappenedToItsFile(t *testing.T) {
	for want, harm := range map[string]func(path string, size int64) error{
		"was removed while it was in use":   func(path string, _ int64) error { return os.Remove(path) },
		"offset 16: it was cut short":       func(path string, _ int64) error { return os.Truncate(path, 16) },
		": there is no record of a store":   func(path string, size int64) error { return scribble(path, size, "scribble scribble") },
		": there is no record of a store\n": func(path string, size int64) error { return scribble(path, size, strings.Repeat("\x00", 64)) },
	} {
		path := filepath.Join(t.TempDir(), "store")
		s := open(t, path)
		if err := s.Set(t.Context(), "key", []byte("value")); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "never")
			got <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Get(ctx, "never"); !errors.Is(err, context.DeadlineExceeded) { // by then the other waits as well
			t.Fatal(err)
		}
		cancel()
		if err := harm(path, st.Size()); err != nil {
			t.Fatal(err)
		}
		waiting, later := <-got, s.Set(t.Context(), "key", nil)
		for _, err := range []error{waiting, later} {
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v; want one with %q and the path", err, want)
			}
		}
		if strings.HasPrefix(want, ":") && !strings.Contains(later.Error(), "offset "+strconv.FormatInt(st.Size(), 10)) {
			t.Errorf("error %v; want one that names offset %d", later, st.Size())
		}
	}
}

func scribble(path string, at int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), at)
	return errors.Join(err, f.Close())
}
