package progress_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAsk: what a worker says of itself is what the agent gets, also if the name of the file is too long for a socket.
func TestAsk(t *testing.T) {
	for _, dir := range []string{"d", strings.Repeat("long", 40)} {
		file := filepath.Join(t.TempDir(), dir, "0")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := progress.Ask(t.Context(), file, false, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nobody serves: %v", err)
		}
		want := progress.Status{Pid: 7, Rank: 3, Operation: true, Waits: []progress.Wait{{Rank: 3, For: 1, In: "Barrier #2"}},
			Suspect: &progress.Suspect{Rank: 1, Text: "has not called Barrier #2"}, Stacks: strings.Repeat("main.main()\n", 100_000)}
		var first *progress.Server
		for range 2 { // a process after another one that has not removed its socket
			s, err := progress.Serve(file, func(stacks bool) *progress.Status {
				status := want
				if !stacks {
					status.Stacks = ""
				}
				return &status
			})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s
				continue
			}
			t.Cleanup(s.Close)
		}
		got, err := progress.Ask(t.Context(), file, true, nil)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%d bytes of stacks, %v, want %d", len(got.Stacks), err, len(want.Stacks))
		}
		if got, err := progress.Ask(t.Context(), file, false, nil); err != nil || got.Stacks != "" || got.Rank != 3 {
			t.Errorf("%+v, %v", got, err)
		}
		first.Close()
	}
}

// TestBadStatus: a process that answers nonsense, or too much, or nothing, does no harm.
func TestBadStatus(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{"", "cannot be read"},
		{"nonsense", "cannot be read"},
		{`{"waits":[{"rank":-1}]}`, "makes no sense"},
		{`{"activity":"` + strings.Repeat("x", 5000) + `"}`, "too long"},
		{`{"waits":[` + strings.Repeat(`{},`, 2000) + `{}]}`, "too many waits"},
		{strings.Repeat(" ", progress.MaxStatus+1), "more than"},
	} {
		file := filepath.Join(t.TempDir(), "0")
		l, err := net.Listen("unix", progress.Socket(file))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 64))
				_, _ = conn.Write([]byte(c.answer))
				_ = conn.Close()
			}
		}()
		if s, err := progress.Ask(t.Context(), file, false, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %+v, %v", c.answer, s, err)
		}
		_ = l.Close()
	}
	file := filepath.Join(t.TempDir(), "0")
	l, err := net.Listen("unix", progress.Socket(file)) // which accepts nobody, as a stopped process
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := progress.Ask(ctx, file, false, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody answers: %+v, %v", s, err)
	}
	left := filepath.Join(t.TempDir(), "1")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: progress.Socket(left)}), syscall.Close(fd))
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := progress.Ask(t.Context(), left, false, nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("of a process that has ended: %+v, %v", s, err)
	}
}

// TestStrangeQuestions: a client that asks nothing, or nonsense, gets nothing, and the next one is answered.
func TestStrangeQuestions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "0")
	s, err := progress.Serve(file, func(bool) *progress.Status { return &progress.Status{Rank: 1} })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, question := range []string{"", "GET / HTTP/1.1\r\n", strings.Repeat("x", 100_000)} {
		conn, err := net.Dial("unix", progress.Socket(file))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(question)) // the server may have closed the connection already
		_ = conn.Close()
	}
	if got, err := progress.Ask(t.Context(), file, false, nil); err != nil || got.Rank != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTouch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "0")
	long := time.Unix(1, 0)
	for range 2 {
		if err := progress.Touch(file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || !info.ModTime().After(long) {
			t.Errorf("%v, %v", info, err)
		}
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := progress.Touch(filepath.Join(file, "below a file")); err == nil {
		t.Error("touched what cannot be")
	}
}
