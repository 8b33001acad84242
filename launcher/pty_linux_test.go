package launcher

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

	"github.com/gorun/gorun/launcher/spool"
)

// TestPty: stdout of the workers that Spec.Pty names is a terminal of the size of the console, less what stands before lines, also when that
// changes. It is not their controlling terminal, and a file has its bytes unchanged. stderr stays a pipe.
func TestPty(t *testing.T) {
	screen, theirs, err := openPty()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	resize := func(rows, columns uint16) {
		if err := control(screen, func(fd int) error {
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
		}); err != nil {
			t.Fatal(err)
		}
	}
	resize(10, 60)
	s, _ := spec(t, 2)
	const script = `printf 'a\nb\r\n\tc\004\021\n'; [ -t 1 ] || exit 0; [ -t 2 ] && echo tty stderr; (: </dev/tty) 2>/dev/null && echo controlling
trap 'stty size <&1; exit' WINCH; stty size <&1; while :; do sleep 0.01; done`
	s.Argv = []string{"/bin/sh", "-c", script}
	for i := range s.Workers {
		s.Workers[i].Env = os.Environ()
	}
	s.Stdout, s.Stderr, s.Spool = theirs, nil, spool.New()
	s.Pty = func(local int) bool { return local == 1 }
	s.Logs = LogSpec{Dir: t.TempDir(), Tee: StdMap{Default: Both}}
	g := start(t, s)
	var shown []byte
	for buf := make([]byte, 1000); !strings.Contains(string(shown), "[1] 10 56\n"); {
		n, err := screen.Read(buf)
		if shown = append(shown, buf[:n]...); err != nil {
			t.Fatalf("%v after %q", err, shown)
		}
	}
	resize(20, 80)
	g.Signal(syscall.SIGWINCH)
	exits(t, g)
	_ = theirs.Close()
	if rest, err := io.ReadAll(screen); !errors.Is(err, syscall.EIO) || !strings.Contains(string(rest), "[1] 20 76\n") {
		t.Errorf("%v; the console shows %q", err, rest)
	}
	for rank, want := range []string{"a\nb\r\n\tc\x04\x11\n", "a\nb\r\n\tc\x04\x11\n10 56\n20 76\n"} {
		path := filepath.Join(s.Logs.Dir, strconv.Itoa(rank), "stdout.log")
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q; %v", path, got, want, err)
		}
	}
}
