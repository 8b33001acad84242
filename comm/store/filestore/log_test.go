//go:build linux

package filestore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/alloctest"
)

// A fileEntry is one record, as it was written or read.
type fileEntry struct {
	key, value string
	deleted    bool
}

func (e fileEntry) record() []byte {
	if e.deleted {
		return encode(e.key, nil)
	}
	return encode(e.key, []byte(e.value))
}

var fileEntries = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fileEntry {
	if rapid.Bool().Draw(t, "deleted") {
		return fileEntry{key: rapid.StringN(1, 8, 8).Draw(t, "key"), deleted: true}
	}
	return fileEntry{key: rapid.StringN(1, 8, 8).Draw(t, "key"), value: rapid.String().Draw(t, "value")}
}), 1, 6)

// replayed opens a file with these records and returns what replay finds in it.
func replayed(t testing.TB, path string, contents []byte) (entries []fileEntry, l *logFile, err error) {
	t.Helper()
	if err := os.WriteFile(path, append([]byte(magic), contents...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	l = &logFile{file: f, path: path, end: int64(len(magic))}
	err = l.replay(func(key string, value []byte) {
		entries = append(entries, fileEntry{key, string(value), value == nil})
	})
	return entries, l, err
}

func isPrefix(of, entries []fileEntry) bool {
	for i, e := range entries {
		if i >= len(of) || e != of[i] {
			return false
		}
	}
	return true
}

// Wherever a writer is killed, the records before its own stay, and the next record comes after them.
func TestATornRecordNeverHappened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	rapid.Check(t, func(rt *rapid.T) {
		written := fileEntries.Draw(rt, "written")
		var contents []byte
		starts := make([]int, 0, len(written))
		for _, e := range written {
			starts = append(starts, len(contents))
			contents = append(contents, e.record()...)
		}
		cut := rapid.IntRange(0, len(contents)).Draw(rt, "cut")
		whole := 0
		for whole < len(written) && starts[whole]+len(written[whole].record()) <= cut {
			whole++
		}
		got, l, err := replayed(t, path, contents[:cut])
		defer l.file.Close()
		if err != nil || len(got) != whole || !isPrefix(written, got) {
			rt.Fatalf("replayed %v, %v; want the first %d of %v", got, err, whole, written)
		}
		if err := l.append("next", []byte("record")); err != nil {
			rt.Fatal(err)
		}
		onDisk, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		got, again, err := replayed(t, path, onDisk[len(magic):])
		defer again.file.Close()
		if want := append(written[:whole:whole], fileEntry{key: "next", value: "record"}); err != nil || len(got) != len(want) || !isPrefix(want, got) {
			rt.Fatalf("after the next writer: %v, %v; want %v", got, err, want)
		}
	})
}

// Every changed bit is noticed, and none makes a record look like one that was cut short.
func TestADamagedRecordIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	rapid.Check(t, func(rt *rapid.T) {
		written := fileEntries.Draw(rt, "written")
		var contents []byte
		for _, e := range written {
			contents = append(contents, e.record()...)
		}
		bit := rapid.IntRange(0, 8*len(contents)-1).Draw(rt, "bit")
		contents[bit/8] ^= 1 << (bit % 8)
		got, l, err := replayed(t, path, contents)
		defer l.file.Close()
		if err == nil || !strings.Contains(err.Error(), path+", offset ") {
			rt.Fatalf("error %v; want one with path and offset", err)
		}
		if len(got) >= len(written) || !isPrefix(written, got) {
			rt.Fatalf("replayed %v of %v", got, written)
		}
	})
}

func FuzzReplay(f *testing.F) {
	f.Add(encode("key", []byte("value")))
	f.Add(append(encode("key", nil), "torn"...))
	f.Add([]byte(strings.Repeat("\x00", 40)))
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, contents []byte) {
		var (
			entries []fileEntry
			l       *logFile
			err     error
		)
		alloctest.AtMost(t, 64*len(contents), func() {
			if l != nil {
				_ = l.file.Close()
			}
			entries, l, err = replayed(t, path, contents)
		})
		defer l.file.Close()
		var again []byte
		for _, e := range entries {
			again = append(again, e.record()...)
		}
		if !bytes.HasPrefix(contents, again) || l.end != int64(len(magic)+len(again)) {
			t.Errorf("%x replays to %v, up to %d, %v", contents, entries, l.end, err)
		}
	})
}

func TestAFullDiskTakesNothingBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	_, l, err := replayed(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	l.end = maxSize - 20
	if err := l.append("key", make([]byte, 100)); err == nil || !strings.Contains(err.Error(), path+" is full") {
		t.Errorf("append to a full store: %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != int64(len(magic)) {
		t.Errorf("the file was touched: %v, %v", st.Size(), err)
	}
}

// A process that is stopped while it holds the lock does not stop the others.
func TestCallsEndWhileAnotherHasTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	stopped, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.file.Close()
	if err := stopped.lock(t.Context(), nil, accessLock, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Set(ctx, "key", nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"key"`) {
		t.Errorf("Set: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var missing *store.MissingKeysError
	if _, err := s.Get(ctx, "key"); !errors.As(err, &missing) {
		t.Errorf("Get: %v", err)
	}
	pending := make(chan error, 2)
	go func() { pending <- s.Set(context.Background(), "key", nil) }()
	go func() { _, err := s.Get(context.Background(), "key"); pending <- err }()
	eventually(t, func() bool { return len(s.busy) == 1 && s.waiting.Load() == 1 })
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for range 2 {
		if err := <-pending; !errors.Is(err, store.ErrClosed) {
			t.Errorf("a call that waits for the lock when the store is closed: %v", err)
		}
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("this did not come about within a minute")
		}
	}
}

// Where the kernel reports no changes, the store polls, and only while a call waits.
func TestPolls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	writer, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	log, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	deaf, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	reader := newStore(log, deaf)
	defer reader.Close()
	for _, key := range []string{"first", "second"} {
		got := make(chan error, 1)
		go func() {
			_, err := reader.Get(t.Context(), key)
			got <- err
		}()
		eventually(t, func() bool { return reader.waiting.Load() == 1 })
		if err := writer.Set(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("Get(%s): %v", key, err)
		}
		time.Sleep(2 * longestPause) // nobody waits, so the next Get finds it idle
	}
}
