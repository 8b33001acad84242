package guard

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// However many there are, the descriptors come in their order and are closed on exec.
func TestFilesComeInOrder(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		files := make([]*os.File, rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(249, 251), rapid.IntRange(499, 501)).Draw(t, "files"))
		defer func() {
			for _, f := range files {
				_ = f.Close()
			}
		}()
		for i := range files {
			f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(i%7)), os.O_CREATE|os.O_RDONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			files[i] = f
		}
		ours, theirs := socketPair(t)
		sent := make(chan error, 1)
		go func() {
			err := sendFiles(ours, files)
			_, after := ours.WriteString("text")
			sent <- errors.Join(err, after)
		}()
		from := receiver{socket: theirs}
		text, err := "", error(nil)
		for buf := make([]byte, 10); err == nil && !strings.HasSuffix(text, "text"); {
			var n int
			n, err = from.Read(buf)
			text += string(buf[:n])
		}
		fds := from.take(len(files))
		if err := errors.Join(err, <-sent); err != nil || len(fds) != len(files) || len(from.files) > 0 || strings.TrimSpace(text) != "text" {
			t.Fatalf("%d of %d files: %v", len(fds), len(files), err)
		}
		for i, fd := range fds {
			got := os.NewFile(uintptr(fd), "received")
			was, err1 := files[i].Stat()
			is, err2 := got.Stat()
			flags, err3 := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			_ = got.Close()
			if err := errors.Join(err1, err2, err3); err != nil || !os.SameFile(was, is) || flags&unix.FD_CLOEXEC == 0 {
				t.Fatalf("file %d: %v, %v, flags %d, %v", i, was, is, flags, err)
			}
		}
	})
}

// The end of the one is an error of the other.
func TestFilesOfNobody(t *testing.T) {
	ours, theirs := socketPair(t)
	_ = ours.Close()
	if n, err := (&receiver{socket: theirs}).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(n, err)
	}
	ours, theirs = socketPair(t)
	_ = syscall.Shutdown(theirs, syscall.SHUT_RDWR)
	if err := sendFiles(ours, []*os.File{os.Stdin}); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}

// socketPair is as between agent and guard.
func socketPair(t interface {
	Fatal(...any)
	Cleanup(func())
}) (ours *os.File, theirs int) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		t.Fatal(err)
	}
	ours = os.NewFile(uintptr(pair[0]), "ours")
	t.Cleanup(func() { _ = ours.Close(); _ = unix.Close(pair[1]) })
	return ours, pair[1]
}
