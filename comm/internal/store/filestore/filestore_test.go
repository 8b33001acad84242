package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/store/filestore"
	"github.com/gorun/gorun/comm/internal/testing/storetest"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.OwnSettings(m)) }

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
	ctx := t.Context()
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
		t.Errorf("the last has closed, and the directory: %v", err)
	}
}

func TestDoesNotMixRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	killed := child(t, path, "earlier")
	for len(keys(t, path)) < 3 {
		time.Sleep(time.Millisecond)
	}
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

// The first to open a store, or the last to close it, is killed while another one waits for it: that one finds nothing.
func TestFinishesWhatAKilledOneHasBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	stale := filepath.Join(path, "key-"+strings.Repeat("0", 64))
	err := os.Mkdir(path, 0o700)
	for _, name := range []string{stale, filepath.Join(path, "write")} {
		err = errors.Join(err, os.WriteFile(name, nil, 0o600))
	}
	var locked []*os.File
	for _, name := range []string{"open", "used"} {
		f, e := os.Create(filepath.Join(path, name))
		err = errors.Join(err, e, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
		locked = append(locked, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := filestore.Open(path)
		if err == nil {
			_, err = os.Stat(stale)
			_ = s.Close()
		}
		opened <- err
	}()
	for _, f := range locked { // as when their process ends, in this order
		time.Sleep(10 * time.Millisecond) // mostly, Open waits by then
		select {
		case err := <-opened:
			t.Fatalf("Open has not waited: %v", err)
		default:
		}
		_ = f.Close()
	}
	if err := <-opened; !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the earlier run: %v; want it gone", err)
	}
}

// What others put into the directory while the store is open stays there.
func TestRemovesItsOwnFilesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := open(t, path)
	if err := errors.Join(s.Set(t.Context(), "key", nil), os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o600), s.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(path)
	if err != nil || len(files) != 1 || files[0].Name() != "thesis.txt" {
		t.Errorf("there is %v, %v; want the file of somebody else", files, err)
	}
}

// keys returns the files of keys at path.
func keys(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "key-*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Open refuses what is no store, or not this user's own, and leaves it as it is.
func TestLeavesWhatIsNotAStore(t *testing.T) {
	dir := t.TempDir()
	inDir := func(name string) string { return filepath.Join(dir, name) }
	keyFile := "key-" + strings.Repeat("0", 64)
	if err := errors.Join(
		os.WriteFile(inDir("thesis.txt"), []byte("gorun is not mentioned here"), 0o600),
		os.Mkdir(inDir("letters"), 0o700), os.WriteFile(inDir("letters/1.txt"), []byte("dear"), 0o600),
		os.Mkdir(inDir("everybody"), 0o700), os.Chmod(inDir("everybody"), 0o777),
		os.Mkdir(inDir("real"), 0o700), os.Symlink("real", inDir("link")),
		os.Mkdir(inDir("theirs"), 0o700),
		os.Mkdir(inDir("keys"), 0o700), os.WriteFile(inDir("keys/key-home.pem"), []byte("secret"), 0o600),
		os.MkdirAll(inDir("garbled/open"), 0o700), os.WriteFile(inDir("garbled/"+keyFile), nil, 0o600),
		os.Mkdir(inDir("links"), 0o700), os.Symlink("elsewhere", inDir("links/open")),
	); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"thesis.txt": "it is no directory", "letters": `it is no store: it has a file "1.txt"`, "everybody": "others than its owner can write to it",
		"link": "it is no directory", "no/such/directory": "no such file or directory",
		"keys": `it is no store: it has a file "key-home.pem"`, "garbled": `it is no store: it has a file "open"`,
		"links": `it is no store: it has a file "open"`,
	}
	if os.Chown(inDir("theirs"), 54321, 54321) == nil {
		refused["theirs"] = "it belongs to user 54321"
	}
	before := listing(t, dir)
	for name, want := range refused {
		if _, err := filestore.Open(inDir(name)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), inDir(name)) {
			t.Errorf("%s: %v; want one with %q and the path", name, err, want)
		}
	}
	if after := listing(t, dir); after != before {
		t.Errorf("there was\n%sand now there is\n%s", before, after)
	}
}

// If the directory is removed, a call that waits returns an error that says so, and so do later ones.
func TestSaysThatItsDirectoryWasRemoved(t *testing.T) {
	for name, again := range map[string]bool{"removed": false, "and made again": true} {
		path := filepath.Join(t.TempDir(), "store")
		s := open(t, path)
		got := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "never")
			got <- err
		}()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if again {
			open(t, path)
		}
		for _, err := range []error{<-got, s.Set(t.Context(), "key", nil)} {
			if err == nil || !strings.Contains(err.Error(), path+": it was removed while it was in use") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Many open and close a store at the same time: each finds it empty, or with what others in it have written, and
// nothing is left.
func TestManyOpenAndClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				s, err := filestore.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				key, value := fmt.Sprint(i, n), []byte{byte(n)}
				err = s.Set(t.Context(), key, value)
				got, getErr := s.Get(t.Context(), key)
				if err = errors.Join(err, getErr, s.Close()); err != nil || !bytes.Equal(got, value) {
					t.Errorf("%s: %v, %v", key, got, err)
				}
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// A call that waits for a lock that another process has ends when its context does, or the store.
func TestCallsEndWhileAnotherWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := open(t, path)
	other, err := os.OpenFile(filepath.Join(path, "write"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Set(ctx, "key", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- s.Set(t.Context(), "key", nil) }()
	time.Sleep(time.Millisecond)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// listing returns what lies in dir, one entry a line, with the sizes of files.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, info.Mode(), path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
