package launcher

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher/spool"
)

// TestPty: stdout of the workers that Spec.Pty names is a terminal with room for what the console shows of a line, but not their
// controlling terminal, and what it carries is the same in a file; stderr stays a pipe.
func TestPty(t *testing.T) {
	screen, theirs, err := openPty()
	if err == nil {
		err = control(screen, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 60}) })
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	s, _ := spec(t, 2)
	const script = `[ -t 1 ] && echo tty; [ -t 2 ] && echo tty stderr; (: </dev/tty) 2>/dev/null && echo controlling; [ -t 1 ] && stty size <&1; printf 'a\nb\r\n\tc\004\021'`
	s.Argv = []string{"/bin/sh", "-c", script}
	for i := range s.Workers {
		s.Workers[i].Env = os.Environ()
	}
	s.Stdout, s.Stderr, s.Spool = theirs, nil, spool.New()
	s.Pty = func(local int) bool { return local == 1 }
	s.Logs = LogSpec{Dir: t.TempDir(), Tee: StdMap{Default: Both}}
	exits(t, start(t, s))
	_ = theirs.Close()
	if shown, err := io.ReadAll(screen); !errors.Is(err, syscall.EIO) || !strings.Contains(string(shown), "[1] 10 56\n") {
		t.Errorf("%v; the console shows %q", err, shown)
	}
	for rank, want := range []string{"a\nb\r\n\tc\x04\x11", "tty\n10 56\na\nb\r\n\tc\x04\x11"} {
		path := filepath.Join(s.Logs.Dir, string(rune('0'+rank)), "stdout.log")
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q; %v", path, got, want, err)
		}
	}
}
